import sys

from specdec.engine_surface import main
from specdec.errors import SpecdecError

try:
    main(sys.argv[1:])
except SpecdecError as error:
    raise SystemExit(f"{error}") from None
