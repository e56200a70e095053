package emulate

import (
	"io"
	"os"
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
