// RUN: not byoc-opt %s -p 'plan-dnnl-layouts{layout=diagonal}' 2>&1 | filecheck %s

builtin.module {}
// CHECK: given ('diagonal',), expected {{.*}}'plain', 'channels_last', 'blocked_8', 'blocked_16'
