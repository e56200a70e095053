package phantom

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// rewinding notes where the standard input of a command begins. What it returns
// goes back there, or says why a second run would not read what the first one did.
func rewinding(stdin io.Reader) (rewind func() (obstacle string)) {
	const gone = "the command read its standard input, which cannot be read again; --values computed needs one run only"
	if s, ok := stdin.(io.Seeker); ok {
		if at, err := s.Seek(0, io.SeekCurrent); err == nil {
			return func() string {
				if _, err := s.Seek(at, io.SeekStart); err != nil {
					return gone
				}
				return ""
			}
		}
	}
	f, ok := stdin.(*os.File)
	before := ok && atEnd(f)
	return func() string {
		if ok && !before && atEnd(f) {
			return gone
		}
		return ""
	}
}

// atEnd reports whether a pipe has nothing left and nobody writes to it.
func atEnd(f *os.File) bool {
	poll := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}
	_, err := unix.Poll(poll, 0)
	return err == nil && poll[0].Revents&(unix.POLLIN|unix.POLLHUP) == unix.POLLHUP
}
