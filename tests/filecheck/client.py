"""Client of a command in a process that `server.py` forks: `client.py SOCKET COMMAND ARGUMENTS...`.

It needs nothing but the standard library, and starts in 10 ms.
"""

import json
import os
import socket
import sys

with socket.socket(socket.AF_UNIX) as server:
    server.connect(sys.argv[1])
    request = json.dumps([sys.argv[2:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(server, [len(request).to_bytes(8, "little")], [0, 1, 2])
    server.sendall(request)
    code = server.recv(1)
sys.exit(code[0] if code else f"{sys.argv[2]} died")
