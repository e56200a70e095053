package pymodule

import (
	"fmt"
	"runtime"
)

// Error says what of a source the evaluator does not know, and where it is.
type Error struct {
	File string
	Line int
	What string
}

func (e *Error) Error() string {
	if e.File == "" {
		return e.What
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.What)
}

// failure is what the evaluator panics with that cannot continue. Who catches it says
// where that was.
func failure(format string, args ...any) *Error { return &Error{What: fmt.Sprintf(format, args...)} }

// raised is a Python exception on its way.
type raised struct {
	kind    string // of those that Python has
	message string
	object  *instance // nil until it is asked for
}

func raise(kind, format string, args ...any) *raised {
	return &raised{kind: kind, message: fmt.Sprintf(format, args...)}
}

func (r *raised) Error() string {
	if r.object != nil {
		return fmt.Sprintf("%s: %s", r.object.class.name, r.message)
	}
	return r.kind + ": " + r.message
}

// locate says where a failure happened, if that is not known yet.
func (m *Machine) locate(r any) {
	if e, ok := r.(*Error); ok && e.File == "" && m.frame != nil {
		e.File, e.Line = m.frame.code.file, m.frame.line
	}
}

// catch makes an error of a panic that is the evaluator's, and says where it
// happened.
func (m *Machine) catch(err *error) {
	r := recover()
	if r == nil {
		return
	}
	var e *Error
	switch r := r.(type) {
	case *Error:
		e = r
	case *raised:
		e = &Error{What: "it raises " + r.Error()}
	case runtime.Error: // arguments that Go did not expect
		e = &Error{What: fmt.Sprintf("what is called here is not known to be called so (%v)", r)}
	default:
		panic(r)
	}
	m.locate(e)
	m.frame = nil
	*err = e
}
