package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"
)

// AuditLog is where the audit records go: a file of one JSON object a line, or,
// without one, the server's log. It may be used concurrently.
//
// A record is written whole before record returns. A file is opened for
// appending alone, is readable by its owner alone when it is made here, and is
// not flushed to the disk: what the machine's own crash loses is the last
// moments. A record whose write broke off is closed with a line break before the
// next one, so that no two records ever share a line.
type AuditLog struct {
	path string
	log  *slog.Logger // without a path

	mu     sync.Mutex
	file   *os.File
	torn   bool // the file's last line is not whole
	closed bool
}

// NewAuditLog opens the file at path, and makes it where there is none. Without
// a path the records go to log as lines with the message "audit", whatever its
// level. Errors are of the file.
func NewAuditLog(path string, log *slog.Logger) (*AuditLog, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	a := &AuditLog{path: path, log: log}
	if path == "" {
		return a, nil
	}
	return a, a.Reopen()
}

// Reopen opens the path again, for a file that has been renamed away by whoever
// rotates it. When that fails the records go on into the file that is open.
func (a *AuditLog) Reopen() error {
	if a.path == "" {
		return nil
	}
	// NONBLOCK lets a pipe that nobody reads be refused below instead of
	// holding the server up; on a file it means nothing.
	file, err := os.OpenFile(a.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("open the audit log: %w", err)
	}
	torn, err := endsTorn(file)
	if err != nil {
		return fmt.Errorf("open the audit log: %w", errors.Join(err, file.Close()))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	old := a.file
	a.file, a.torn = file, torn
	if old != nil {
		_ = old.Close() // what it held has been handed to the system
	}
	return nil
}

// endsTorn wants a regular file, and says whether its last line may be one that
// broke off. The file cannot be read through a descriptor that only appends.
func endsTorn(file *os.File) (bool, error) {
	info, err := file.Stat()
	if err != nil {
		return false, err
	}
	if !info.Mode().IsRegular() {
		return false, errors.New("it is no regular file")
	}
	if info.Size() == 0 {
		return false, nil
	}
	reader, err := os.Open(file.Name())
	if err != nil {
		return true, nil // not readable to us: an empty line does no harm
	}
	defer func() { _ = reader.Close() }()
	var last [1]byte
	if _, err := reader.ReadAt(last[:], info.Size()-1); err != nil {
		return true, nil // it was cut meanwhile
	}
	return last[0] != '\n', nil
}

// record writes one record. JSON has no raw line break, so that nothing in a
// record can begin another.
func (a *AuditLog) record(r auditRecord) error {
	if a.path == "" {
		a.logged(r)
		return nil
	}
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write an audit record: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return errors.New("write an audit record: the log is closed")
	}
	if a.torn {
		line = append([]byte{'\n'}, line...)
	}
	n, err := a.file.Write(append(line, '\n'))
	if err == nil || n > 0 {
		a.torn = err != nil
	}
	if err != nil {
		return fmt.Errorf("write an audit record: %w", err)
	}
	return nil
}

// logged hands a record to the log's handler past its level: an operator who
// wants fewer lines has not asked for less of a record.
func (a *AuditLog) logged(r auditRecord) {
	line := slog.NewRecord(r.Time, slog.LevelInfo, "audit", 0)
	line.AddAttrs(r.attrs()...)
	_ = a.log.Handler().Handle(context.Background(), line) // standard error has no one to tell
}

// toFile says whether the records have a file of their own.
func (a *AuditLog) toFile() bool { return a.path != "" }

// Close closes the file; records that come later are refused.
func (a *AuditLog) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file == nil || a.closed {
		return nil
	}
	a.closed = true
	return a.file.Close()
}

// now is the time of a record, with the zone that all of them have.
func now() time.Time { return time.Now().UTC() }
