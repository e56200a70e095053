package lockfile

import (
	"errors"
	"os"
)

func lock(*os.File, bool) error { return errors.ErrUnsupported } // a page in a browser has no other processes
