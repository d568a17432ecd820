package sandboxtest

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"sync"
	"time"

	"caisson/sandbox"
)

// fakeSession is a session of a Fake.
type fakeSession struct {
	fake  *engine
	spec  sandbox.Spec
	info  sandbox.Info
	files *fakeFiles

	mu        sync.Mutex
	gone      bool
	orphans   []sandbox.Orphan
	processes map[*process]struct{}
}

// Info implements sandbox.Session.
func (s *fakeSession) Info() sandbox.Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info
}

// Spec implements sandbox.Session.
func (s *fakeSession) Spec() sandbox.Spec {
	spec := s.spec
	spec.Owner = sandbox.Owner{} // labels have only its hash
	return spec
}

// Orphans implements sandbox.Session: what Abandon has left.
func (s *fakeSession) Orphans(ctx context.Context) ([]sandbox.Orphan, error) {
	if err := s.enter(ctx, OpList); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.orphans, nil
}

// Abandon puts commands of a server that is gone into a session.
func (f *Fake) Abandon(id string, orphans ...sandbox.Orphan) {
	f.mu.Lock()
	s := f.sessions[id]
	f.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orphans = orphans
}

// SetState makes the engine show a session in that state, made at that time.
func (f *Fake) SetState(id string, state sandbox.State, created time.Time) {
	f.mu.Lock()
	s := f.sessions[id]
	f.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.info.State, s.info.CreatedAt = state, created
}

// enter stands at the beginning of every call into the session.
func (s *fakeSession) enter(ctx context.Context, op string) error {
	if err := s.fake.pass(ctx, op); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return sandbox.Errorf(op, sandbox.KindSessionLost, "the session's container is gone from the engine")
	}
	return nil
}

// Start implements sandbox.Session.
func (s *fakeSession) Start(ctx context.Context, spec sandbox.ExecSpec, spool *sandbox.Spool) (*sandbox.Exec, error) {
	if err := s.enter(ctx, OpStart); err != nil {
		return nil, err
	}
	p := newProcess(s, spec, spool)
	s.mu.Lock()
	if s.processes == nil {
		s.processes = map[*process]struct{}{}
	}
	s.processes[p] = struct{}{}
	s.mu.Unlock()
	p.exec.Attach(p)
	go p.run()
	return p.exec, nil
}

func (s *fakeSession) running() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.processes)
}

func (s *fakeSession) left(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.processes, p)
}

// end stops everything in the session, as the end of a container does.
func (s *fakeSession) end() {
	s.mu.Lock()
	s.gone = true
	var all []*process
	for p := range s.processes {
		all = append(all, p)
	}
	s.mu.Unlock()
	for _, p := range all {
		p.vanish()
	}
}

// WriteFiles implements sandbox.Session.
func (s *fakeSession) WriteFiles(ctx context.Context, files []sandbox.FileWrite) ([]sandbox.FileWritten, error) {
	if err := s.enter(ctx, OpWrite); err != nil {
		return nil, err
	}
	return s.files.write(files)
}

// WriteArchive implements sandbox.Session.
func (s *fakeSession) WriteArchive(ctx context.Context, path string, archive io.Reader) ([]sandbox.FileWritten, error) {
	if err := s.enter(ctx, OpWrite); err != nil {
		return nil, err
	}
	var files []sandbox.FileWrite
	for r := tar.NewReader(archive); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return s.files.write(files)
		}
		var content []byte
		if err == nil {
			content, err = io.ReadAll(r)
		}
		var ours *sandbox.Error
		switch {
		case errors.As(err, &ours):
			return nil, err
		case err != nil:
			return nil, sandbox.Invalid("content", "content is not a whole tar")
		case header.Typeflag == tar.TypeDir:
			continue
		case header.Typeflag != tar.TypeReg || !fs.ValidPath(header.Name):
			return nil, sandbox.Invalid("content", "the archive has an entry that may not be written")
		}
		mode := header.FileInfo().Mode().Perm()
		files = append(files, sandbox.FileWrite{Path: path + "/" + header.Name, Content: content, Mode: &mode})
	}
}

// ReadFile implements sandbox.Session.
func (s *fakeSession) ReadFile(ctx context.Context, read sandbox.FileRead) (sandbox.FileContent, error) {
	if err := s.enter(ctx, OpRead); err != nil {
		return sandbox.FileContent{}, err
	}
	return s.files.read(read)
}

// ReadDir implements sandbox.Session.
func (s *fakeSession) ReadDir(ctx context.Context, path string, recursive bool, limit int) ([]sandbox.DirEntry, bool, error) {
	if err := s.enter(ctx, OpReadDir); err != nil {
		return nil, false, err
	}
	return s.files.list(path, recursive, limit)
}
