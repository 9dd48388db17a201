package run

import (
	"os"

	"skeletonkey/fusefs/private"
)

// Hidden does what this process was started for if Run or Exec of another process
// of this program started it: then ok is true, and main must do nothing but exit
// with the code. It must be called before anything else.
func Hidden() (code int, ok bool) {
	switch {
	case private.IsInner():
		return private.Main(newServing().serve), true
	case len(os.Args) == 2 && os.Args[1] == keeperArg:
		return keep(), true
	}
	return 0, false
}
