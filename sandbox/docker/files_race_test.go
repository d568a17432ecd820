package docker

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"caisson/sandbox"
)

// swap lets names be links out of the workspace for one moment and what they
// should be for the next.
func (b *bench) swap() (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			default:
			}
			for name, other := range map[string]string{"d": "link to outside", "f": "link to secret"} {
				_ = unix.Renameat2(unix.AT_FDCWD, b.at(name), unix.AT_FDCWD, b.at(other), unix.RENAME_EXCHANGE)
			}
		}
	}()
	return func() { close(done); <-ended }
}

// What is outside belongs to the session's user here: nothing but the scripts'
// own checks keeps it as it is.
func TestAttackT41_SwappedLinksLeadNowhere(t *testing.T) {
	inEachShell(t, func(b *bench) {
		b.must(os.Mkdir(b.at("../outside"), 0o777))
		b.must(os.Chmod(b.at("../outside"), 0o777))
		for _, name := range []string{"../outside/f", "../outside/canary", "../secret"} {
			b.put(name, "outside", 0o666)
		}
		b.mkdir("d")
		b.put("d/f", "inside", 0o644)
		b.put("f", "inside", 0o644)
		b.link("../outside", "link to outside")
		b.link("../secret", "link to secret")
		stop := b.swap()
		wrote, read, refused := 0, 0, 0
		rounds := 170 // in three shells: 500
		if testing.Short() {
			rounds = 30
		}
		for i := range rounds {
			path := []string{"d/f", "f", "d/new/f"}[i%3]
			w := sandbox.FileWrite{Path: path, Content: []byte("inside"), Append: i%4 == 0}
			if _, err := b.write(w); err == nil {
				wrote++
			} else {
				refused++
			}
			got, err := b.read(sandbox.FileRead{Path: path})
			if err == nil {
				read++
			}
			if strings.Contains(string(got.Content), "outside") {
				b.Errorf("%s: read %q", path, got.Content)
			}
			if i%10 == 0 {
				if got, err := b.read(sandbox.FileRead{Path: "d"}); err == nil && strings.Contains(string(got.Content), "outside") {
					b.Error("read a tree from outside")
				}
				if _, err := b.extractTar("d", packed(b.T, tarFile("x", "inside"))); err == nil {
					wrote++
				}
				entries, _, err := b.list("d", true, 0)
				for _, e := range entries {
					if err == nil && e.Path == "canary" {
						b.Error("listed what is outside")
					}
				}
			}
		}
		stop()
		if wrote == 0 || read == 0 || refused == 0 {
			b.Errorf("no race: %d written, %d read, %d refused", wrote, read, refused)
		}
		b.want("../outside/f", "outside")
		b.want("../secret", "outside")
		b.must(filepath.WalkDir(b.at("../outside"), func(path string, d fs.DirEntry, err error) error {
			if d.Name() != "outside" && d.Name() != "f" && d.Name() != "canary" {
				b.Errorf("outside the workspace: %s", path)
			}
			return err
		}))
	})
}

// meanwhile does something when all of the content has arrived, and before the
// script has seen that it has.
type meanwhile struct {
	r  io.Reader
	do func()
}

func (m meanwhile) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	if errors.Is(err, io.EOF) {
		m.do()
	}
	return n, err
}

// The same race, at the moment that matters most.
func TestAttackT41_NameSwappedDuringAWrite(t *testing.T) {
	inEachShell(t, func(b *bench) {
		b.must(os.Mkdir(b.at("../outside"), 0o777))
		b.must(os.Chmod(b.at("../outside"), 0o777))
		b.put("../secret", "outside", 0o666)
		for target, w := range map[string]sandbox.FileWrite{
			"../outside": {Path: "f", Content: []byte("inside")},
			"../secret":  {Path: "f", Content: []byte("inside"), Append: true},
		} {
			b.put("f", "inside", 0o644)
			b.shell.wrapIn = func(r io.Reader) io.Reader {
				return meanwhile{r, func() {
					b.waitStaged(".")
					b.must(os.Remove(b.at("f")))
					b.link(target, "f")
				}}
			}
			_, err := b.write(w)
			if w.Append && err == nil {
				b.Error("appended to what the name became")
			}
			b.want("../secret", "outside")
			if left, err := os.ReadDir(b.at("../outside")); err != nil || len(left) > 0 {
				b.Errorf("outside: %v, %v", left, err)
			}
			b.must(os.Remove(b.at("f")))
		}
		b.wantNothingLeft()
	})
}
