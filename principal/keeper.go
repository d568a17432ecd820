package principal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"caisson/internal/strictyaml"
)

// pollEvery is how often the file is looked at. A changed one is read when it
// has stood still for one look more, so that half of it is never taken for all.
const pollEvery = time.Second

// KeeperOptions is what a Keeper is made of.
type KeeperOptions struct {
	File     string
	Policies func() []string      // the execution policies that there are; nil: not known
	Log      *slog.Logger         // required
	OnGone   func(names []string) // called, never twice at once, with those who have lost a way to show who they are; may be nil
	Every    time.Duration        // between two looks at the file; 0: a second
}

// Keeper holds the principals that are in force, and reads their file again when
// it changes. It may be used concurrently.
type Keeper struct {
	o    KeeperOptions
	book atomic.Pointer[Book]

	mu   sync.Mutex // one reading at a time
	seen os.FileInfo
}

// Open reads the file. The error is Faults, or says that it cannot be read.
func Open(o KeeperOptions) (*Keeper, error) {
	if o.Every <= 0 {
		o.Every = pollEvery
	}
	k := &Keeper{o: o}
	info, book, err := k.read()
	if err != nil {
		return nil, err
	}
	k.seen = info
	k.book.Store(book)
	k.warn(info)
	return k, nil
}

// Book is what is in force now.
func (k *Keeper) Book() *Book { return k.book.Load() }

// Reload reads the file now, whether it has changed or not. A file that is at
// fault or not there changes nothing: the principals before stay in force, and
// the log says why.
func (k *Keeper) Reload() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	info, next, err := k.read()
	if info != nil {
		k.seen = info
	}
	if err != nil {
		k.complain(err)
		return err
	}
	gone := k.book.Load().gone(next)
	k.book.Store(next)
	k.warn(info)
	k.o.Log.Info("the principals have been read again", "principals", len(next.entries), "cut", len(gone))
	if len(gone) > 0 && k.o.OnGone != nil {
		k.o.OnGone(gone)
	}
	return nil
}

// Watch looks at the file until ctx ends, and reads it again when it has
// changed: at most two looks after it has stood still. Each value of reload, the
// channel of a signal, has it read at once; it may be nil.
func (k *Keeper) Watch(ctx context.Context, reload <-chan os.Signal) {
	ticker := time.NewTicker(k.o.Every)
	defer ticker.Stop()
	var last os.FileInfo
	missing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-reload:
			_ = k.Reload() // logged there
			continue
		case <-ticker.C:
		}
		info, err := os.Stat(k.o.File)
		if err != nil {
			if !missing {
				k.complain(err)
			}
			missing, last = true, nil
			continue
		}
		missing = false
		still := last != nil && same(last, info)
		last = info
		k.mu.Lock()
		changed := !same(k.seen, info)
		k.mu.Unlock()
		if changed && still {
			_ = k.Reload() // logged there
		}
	}
}

func same(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// complain says that the principals before stay in force, and each fault on a
// line of its own.
func (k *Keeper) complain(err error) {
	var faults Faults
	if !errors.As(err, &faults) {
		k.o.Log.Error("the file of principals cannot be read; those before stay in force", "error", err)
		return
	}
	for _, fault := range faults {
		k.o.Log.Error("the file of principals is at fault; those before stay in force", "fault", fault.String())
	}
}

// ReadFile reads a file of principals once. The error is Faults, or says that the
// file cannot be read. Policies are not checked.
func ReadFile(name string) (*Book, error) {
	_, book, err := (&Keeper{o: KeeperOptions{File: name}}).read()
	return book, err
}

// read reads the file as it is now, and what it was when it was opened.
func (k *Keeper) read() (os.FileInfo, *Book, error) {
	file, err := os.Open(k.o.File)
	if err != nil {
		return nil, nil, fmt.Errorf("read the principals: %w", err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, nil, fmt.Errorf("read the principals: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("read the principals: %s is no file", k.o.File)
	}
	text, err := io.ReadAll(io.LimitReader(file, strictyaml.Most+1))
	if err != nil {
		return nil, nil, fmt.Errorf("read the principals: %w", err)
	}
	var policies []string
	if k.o.Policies != nil {
		policies = k.o.Policies()
	}
	book, err := Parse(k.o.File, text, policies)
	return info, book, err
}

// loose are the permissions that the file should not have: it says who may call,
// so only its owner writes it, and hashes are nobody else's business.
const loose fs.FileMode = 0o777 &^ 0o640

// Loose says whether a file of principals with this mode is open to more than it should be.
func Loose(mode fs.FileMode) bool { return mode.Perm()&loose != 0 }

func (k *Keeper) warn(info os.FileInfo) {
	if Loose(info.Mode()) {
		k.o.Log.Warn("the file of principals is open to more than its owner and group", "file", k.o.File, "mode", fmt.Sprintf("%04o", info.Mode().Perm()), "want", "0640 or less")
	}
}
