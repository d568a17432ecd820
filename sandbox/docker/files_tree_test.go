package docker

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"caisson/sandbox"
)

// unpack reads a tar into its headers and contents, by name.
func unpack(t *testing.T, content []byte) (map[string]*tar.Header, map[string]string) {
	t.Helper()
	headers, contents := map[string]*tar.Header{}, map[string]string{}
	r := tar.NewReader(bytes.NewReader(content))
	for {
		hdr, err := r.Next()
		if errors.Is(err, io.EOF) {
			return headers, contents
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if headers[hdr.Name] != nil {
			t.Errorf("%q is there twice", hdr.Name)
		}
		headers[hdr.Name], contents[hdr.Name] = hdr, string(data)
	}
}

func TestAttackT38_OddKindsAreLeftOutOfATree(t *testing.T) {
	inEachShell(t, func(b *bench) {
		for _, name := range oddNames {
			b.put("d/"+name, name, 0o644)
		}
		b.put("d/setuid", "x", 0o755|fs.ModeSetuid)
		b.put("d/deep/er/f", string(noise(70_000)), 0o600)
		b.must(os.Link(b.at("d/setuid"), b.at("d/twin")))
		b.must(syscall.Mkfifo(b.at("d/fifo"), 0o600))
		socket, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		b.must(err)
		b.Cleanup(func() { _ = syscall.Close(socket) })
		b.must(syscall.Bind(socket, &syscall.SockaddrUnix{Name: b.at("d/socket")}))
		b.link("/etc/shadow", "d/absolute")
		b.link("../../secret", "d/escaping")
		b.link("deep/er/f", "d/inside")
		b.link("nowhere", "d/dangling")
		b.link("d", "link to it")
		for _, path := range []string{"d", "link to it", b.at("d")} {
			got, err := b.read(sandbox.FileRead{Path: path})
			b.must(err)
			headers, contents := unpack(b.T, got.Content)
			if !got.Dir || !got.EOF || got.Skipped != 4 || got.Size != int64(len(got.Content)) {
				b.Errorf("dir %v, skipped %d (fifo, socket, two links), size %d", got.Dir, got.Skipped, got.Size)
			}
			for _, name := range oddNames {
				if contents[name] != name {
					b.Errorf("%q holds %q", name, contents[name])
				}
			}
			for name, hdr := range headers {
				if filepath.IsAbs(name) || strings.HasPrefix(name, "../") || hdr.Mode&^0o777 != 0 || hdr.Uid != 0 || hdr.Uname != "" {
					b.Errorf("%q: %+v", name, hdr)
				}
			}
			if contents["deep/er/f"] != string(noise(70_000)) || headers["inside"] == nil || headers["dangling"] == nil ||
				headers["absolute"] != nil || headers["escaping"] != nil || headers["fifo"] != nil || headers["deep/er/"] == nil ||
				headers["twin"] == nil || headers["setuid"] == nil {
				b.Errorf("entries: %v", headers)
			}
		}
	})
}

func TestD19_UnreadablePartOfATreeIsAnError(t *testing.T) {
	inEachShell(t, func(b *bench) {
		b.put("d/f", "x", 0o644)
		b.put("d/closed", "x", 0o200)
		_, err := b.read(sandbox.FileRead{Path: "d"})
		wantKind(b.T, err, sandbox.KindPermission)
	})
}

func TestAttackT23_LargeTreesAreRefused(t *testing.T) {
	inEachShell(t, func(b *bench) {
		b.put("d/a", string(noise(5<<20)), 0o644)
		b.put("d/b", string(noise(5<<20)), 0o644)
		_, err := b.read(sandbox.FileRead{Path: "d"})
		wantKind(b.T, err, sandbox.KindTooLarge)
		b.put("sparse/f", "", 0o644)
		b.must(os.Truncate(b.at("sparse/f"), 1<<40))
		_, err = b.read(sandbox.FileRead{Path: "sparse"})
		wantKind(b.T, err, sandbox.KindTooLarge)
	})
}

func TestAttackT37_LinksThatStayInside(t *testing.T) {
	for _, c := range []struct {
		name, target string
		inside       bool
	}{
		{"a", "b", true},
		{"a", "./b//c/", true},
		{"d/a", "../b", true},
		{"d/a", "..", true},
		{"d/e/a", "../../b", true},
		{"a", "..", false},
		{"a", "../b", false},
		{"d/a", "../../b", false},
		{"a", "b/../../c", false},
		{"d/e/a", "x/../../../../z", false},
		{"d/a", "x/..", false}, // x may be a link to a shallower place
		{"a", "/etc", false},
		{"a", "", false},
	} {
		if got := staysInside(c.name, c.target); got != c.inside {
			t.Errorf("%s -> %q: inside %v", c.name, c.target, got)
		}
	}
}
