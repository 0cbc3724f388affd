#!/usr/bin/env python3
"""Makes memdecay/v1/*_pb2.py (and .pyi) from proto/, which are not committed.

What it is: one call of grpcio-tools. Usage: generate.py [OUT_DIR]; without OUT_DIR the files go
into this package, with it OUT_DIR must be on PYTHONPATH next to this folder.
"""

import sys
from pathlib import Path

from grpc_tools import protoc


def main() -> int:
    here = Path(__file__).resolve().parent
    protos = here.parent.parent / "proto"
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else here
    out.mkdir(parents=True, exist_ok=True)
    sources = [str(path.relative_to(protos)) for path in sorted(protos.glob("memdecay/v1/*.proto"))]
    code = protoc.main(
        [
            "protoc",
            f"-I{protos}",
            f"--python_out={out}",
            f"--pyi_out={out}",
            f"--grpc_python_out={out}",
            *sources,
        ]
    )
    if code == 0:
        (out / "memdecay" / "v1" / "__init__.py").touch()
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
