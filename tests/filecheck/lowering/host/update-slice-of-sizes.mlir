// RUN: byoc-opt %s -p convert-relay-to-linalg,bufferize | filecheck %s
// RUN: byoc-opt %s -p convert-relay-to-linalg,bufferize | byoc-opt --print-op-generic | byoc-opt | filecheck %s

// A cache of any number of entries and places may be the memory of the result: how many elements
// are copied if it is not is a size.
relay.symbol @batch {min = 0, hint = 2}
relay.symbol @room {min = 0, hint = 40}
relay.symbol @new {min = 0, hint = 3}
relay.guard "<=" <[new, room]>

// CHECK-LABEL: func.func @main
// CHECK-SAME:  attributes {byoc.aliases = [array<i64: 0, 0>]}
// CHECK:         %[[N:.*]] = host.size <[4*batch*room]> : index
// CHECK-NEXT:    host.copy_apart %cache, %out of %[[N]] : memref<?x?x4xf32, {{.*}}>, memref<?x?x4xf32, {{.*}}>
// CHECK-NEXT:    host.kernel "update_slice" %update, %starts, %out
func.func @main(
  %cache: tensor<?x?x4xf32, #relay.shape<[batch, room, 4]>>,
  %update: tensor<?x?x4xf32, #relay.shape<[batch, new, 4]>>,
  %starts: tensor<?xi64, #relay.shape<[batch]>>
) -> tensor<?x?x4xf32, #relay.shape<[batch, room, 4]>> {
  %0 = relay.update_slice %cache, %update, %starts : (tensor<?x?x4xf32, #relay.shape<[batch, room, 4]>>, tensor<?x?x4xf32, #relay.shape<[batch, new, 4]>>, tensor<?xi64, #relay.shape<[batch]>>) -> tensor<?x?x4xf32, #relay.shape<[batch, room, 4]>>
  func.return %0 : tensor<?x?x4xf32, #relay.shape<[batch, room, 4]>>
}
