// RUN: byoc-opt %s -p 'round-recurrent-weights{always=true exact=kept}' | filecheck %s

func.func @one_entry(%x: tensor<5x1x1x256xf32>, %s: tensor<1x1x64xf32>) -> tensor<5x1x1x64xf32> {
  %w = relay.constant dense<0.1> : tensor<1x64x256xf32>
  %0, %1, %2 = relay.nn.lstm %x, %w, %s, %s : (tensor<5x1x1x256xf32>, tensor<1x64x256xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>) -> (tensor<5x1x1x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>)
  func.return %0 : tensor<5x1x1x64xf32>
}
// CHECK-LABEL: func.func @one_entry
// CHECK-NEXT:    %[[W:.*]] = relay.constant #relay.weight<{{.*}}> : tensor<1x64x256xbf16>
// CHECK-NEXT:    relay.nn.lstm %x, %[[W]], %s, %s : (tensor<5x1x1x256xf32>, tensor<1x64x256xbf16>, {{.*}}) -> (tensor<5x1x1x64xf32>

func.func @several_entries(%x: tensor<5x1x2x256xf32>, %s: tensor<1x2x64xf32>) -> tensor<5x1x2x64xf32> {
  %w = relay.constant dense<0.1> : tensor<1x64x256xf32>
  %0, %1, %2 = relay.nn.lstm %x, %w, %s, %s : (tensor<5x1x2x256xf32>, tensor<1x64x256xf32>, tensor<1x2x64xf32>, tensor<1x2x64xf32>) -> (tensor<5x1x2x64xf32>, tensor<1x2x64xf32>, tensor<1x2x64xf32>)
  func.return %0 : tensor<5x1x2x64xf32>
}
// CHECK-LABEL: func.func @several_entries
// CHECK:         relay.nn.lstm {{.*}}tensor<1x64x256xf32>

func.func @in_a_first_cache(%x: tensor<5x1x1x64xf32>, %s: tensor<1x1x16xf32>) -> tensor<5x1x1x16xf32> {
  %w = relay.constant dense<0.1> : tensor<1x16x64xf32>
  %0, %1, %2 = relay.nn.lstm %x, %w, %s, %s : (tensor<5x1x1x64xf32>, tensor<1x16x64xf32>, tensor<1x1x16xf32>, tensor<1x1x16xf32>) -> (tensor<5x1x1x16xf32>, tensor<1x1x16xf32>, tensor<1x1x16xf32>)
  func.return %0 : tensor<5x1x1x16xf32>
}
// CHECK-LABEL: func.func @in_a_first_cache
// CHECK:         relay.nn.lstm {{.*}}tensor<1x16x64xf32>

func.func @asked_for(%x: tensor<5x1x1x192xf32>, %s: tensor<1x1x64xf32>) -> tensor<5x1x1x64xf32> {
  %w = relay.constant dense<0.1> : tensor<1x64x192xf32>
  %b = relay.constant dense<0.1> : tensor<1x192xf32>
  %0, %1 = relay.nn.gru %x, %w, %b, %s : (tensor<5x1x1x192xf32>, tensor<1x64x192xf32>, tensor<1x192xf32>, tensor<1x1x64xf32>) -> (tensor<5x1x1x64xf32>, tensor<1x1x64xf32>) loc("kept")
  func.return %0 : tensor<5x1x1x64xf32>
}
// CHECK-LABEL: func.func @asked_for
// CHECK:         relay.nn.gru {{.*}}tensor<1x64x192xf32>
