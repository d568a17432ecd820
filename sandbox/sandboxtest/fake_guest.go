package sandboxtest

import (
	"io"

	"caisson/sandbox"
)

// Command is one run of a program that a test has installed in the images of a Fake.
type Command struct {
	Session        string // its handle
	Args           []string
	Env            map[string]sandbox.Secret // its own, beside the session's
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Killed         <-chan struct{} // closed when it is ended from outside
	// Cause is what has closed Killed: the first signal, or "container".
	Cause func() string
	// File takes a file of the container: it is read and is gone.
	File func(path string) (content string, ok bool)
}

// Install puts a program into every image. What it returns is its exit code.
func (f *Fake) Install(name string, run func(Command) int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.guests[name] = run
}

func (f *engine) guest(name string) (func(Command) int, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	run, ok := f.guests[name]
	return run, ok
}

// take reads a file and removes it.
func (f *fakeFiles) take(name string) (string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	file, ok := f.files[name]
	delete(f.files, name)
	return string(file.content), ok
}

// SpecOf is what the session with that handle was made from.
func (f *Fake) SpecOf(id string) (sandbox.Spec, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.sessions[id]
	if !ok {
		return sandbox.Spec{}, false
	}
	return s.spec, true
}
