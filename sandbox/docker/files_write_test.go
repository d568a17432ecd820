package docker

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"caisson/sandbox"
)

func (b *bench) write(files ...sandbox.FileWrite) ([]sandbox.FileWritten, error) {
	return b.WriteFiles(context.Background(), files)
}

func modeOf(m fs.FileMode) *fs.FileMode { return &m }
func sizeOf(n int64) *int64             { return &n }

func TestBugFS04_UploadsOfAllSizesIntoMissingFolders(t *testing.T) {
	inEachShell(t, func(b *bench) {
		for _, size := range []int{0, 1, 97 << 10, 200 << 10, sandbox.FilePieceLimit} {
			content := noise(size)
			written, err := b.write(sandbox.FileWrite{Path: "new/deep/f", Content: content})
			b.must(err)
			want := sandbox.FileWritten{Path: b.at("new/deep/f"), Bytes: int64(size), Size: int64(size), SHA256: sumOf(content)}
			if len(written) != 1 || written[0] != want {
				b.Errorf("written %+v, want %+v", written, want)
			}
			b.want("new/deep/f", string(content))
			b.must(os.RemoveAll(b.at("new")))
		}
		if b.shell.runs != 5 {
			b.Errorf("%d execs for 5 files", b.shell.runs)
		}
		start := time.Now()
		_, err := b.write(fileOf("/proc/none/f", "x"))
		wantKind(b.T, err, sandbox.KindFileNotFound)
		if took := time.Since(start); took > 3*time.Second {
			b.Errorf("took %v", took)
		}
		b.wantNothingLeft()
	})
}

func TestBugFS01_FilesBelongToTheSessionsUser(t *testing.T) {
	inEachShell(t, func(b *bench) {
		_, err := b.write(sandbox.FileWrite{Path: "d/a.sh", Content: []byte("#!/bin/sh\n"), Mode: modeOf(0o755)})
		b.must(err)
		for name, mode := range map[string]fs.FileMode{"d": 0o755, "d/a.sh": 0o755} {
			info, err := os.Stat(b.at(name))
			b.must(err)
			uid := info.Sys().(*syscall.Stat_t).Uid
			if os.Getuid() == 0 && uid != sessionUID || info.Mode().Perm() != mode {
				b.Errorf("%s: owner %d, mode %v", name, uid, info.Mode())
			}
		}
	})
}

func TestD12_OverwritingKeepsTheMode(t *testing.T) {
	for _, missing := range []string{"", "stat"} {
		t.Run("without "+missing, func(t *testing.T) {
			b := newBench(t, localShells["dash"])
			b.without(missing)
			for _, mode := range []fs.FileMode{0o600, 0o640, 0o755, 0o222, 0o666 | fs.ModeSetgid} {
				b.put("f", "old", mode)
				_, err := b.write(fileOf("f", "new"))
				b.must(err)
				info, err := os.Stat(b.at("f"))
				b.must(err)
				if info.Mode() != mode.Perm() {
					t.Errorf("mode %v became %v", mode, info.Mode())
				}
				_, err = b.write(sandbox.FileWrite{Path: "f", Content: nil, Mode: modeOf(0o444)})
				b.must(err)
				if info, _ = os.Stat(b.at("f")); info.Mode() != 0o444 {
					t.Errorf("mode 0444 became %v", info.Mode())
				}
				b.must(os.Remove(b.at("f")))
			}
		})
	}
}

// The table is what a write must refuse; each leaves all as it was.
func TestAPI07_WritesThatAreRefused(t *testing.T) {
	inEachShell(t, func(b *bench) {
		b.put("file", "old", 0o644)
		b.put("readonly", "old", 0o444)
		b.put("shut/f", "old", 0o644)
		b.must(os.Chmod(b.at("shut"), 0o555))
		b.must(syscall.Mkfifo(b.at("fifo"), 0o666))
		b.link("..", "up")
		b.link("../secret", "out")
		b.link("/etc", "etc")
		b.link("../../new", "d/dangling")
		b.link("loop", "loop")
		b.link("/dev/null", "null")
		for path, kind := range map[string]sandbox.Kind{
			"":                               sandbox.KindInvalid,
			"a\x00b":                         sandbox.KindInvalid,
			strings.Repeat("a", 300):         sandbox.KindInvalid,
			strings.Repeat("a/", 2100) + "a": sandbox.KindInvalid,
			"../secret":                      sandbox.KindPathEscapes,
			"a/../../secret":                 sandbox.KindPathEscapes,
			"..":                             sandbox.KindPathEscapes,
			".":                              sandbox.KindIsDirectory,
			"/":                              sandbox.KindIsDirectory,
			"d":                              sandbox.KindIsDirectory,
			"new/":                           sandbox.KindIsDirectory,
			"file/x":                         sandbox.KindNotDirectory,
			"file/x/y":                       sandbox.KindNotDirectory,
			"readonly":                       sandbox.KindPermission,
			"shut/f":                         sandbox.KindPermission,
			"shut/new":                       sandbox.KindPermission,
			"shut/new/deeper":                sandbox.KindPermission,
			"fifo":                           sandbox.KindInvalid,
			"up/secret":                      sandbox.KindPathEscapes,
			"up/new/x":                       sandbox.KindPathEscapes,
			"out":                            sandbox.KindPathEscapes,
			"etc/new":                        sandbox.KindPathEscapes,
			"d/dangling":                     sandbox.KindPathEscapes,
			"loop":                           sandbox.KindInvalid,
			"null":                           sandbox.KindPathEscapes,
			"/dev/null":                      sandbox.KindInvalid,
			"/proc/1/root/x":                 sandbox.KindPermission,
			"/etc/passwd":                    sandbox.KindPermission,
		} {
			_, err := b.write(fileOf(path, "bad"))
			if sandbox.KindOf(err) != kind {
				b.Errorf("%.60q: %v, of kind %v, want %v", path, err, sandbox.KindOf(err), kind)
			}
		}
		b.want("file", "old")
		b.want("readonly", "old")
		b.wantGone("new")
		b.wantSecret()
		b.wantNothingLeft()
	})
}

func TestAPI07_WritesThroughLinksThatStayInside(t *testing.T) {
	inEachShell(t, func(b *bench) {
		b.put("real/f", "old", 0o640)
		b.link("real", "dir")
		b.link("f", "real/same")
		b.link(b.at("real/f"), "absolute")
		b.link("real/to be made\n", "dangling\n")
		b.link("../workspace/real/f", "around")
		for path, lands := range map[string]string{
			"dir/f": "real/f", "dir/same": "real/f", "absolute": "real/f", "dangling\n": "real/to be made\n",
			"dir/sub/x": "real/sub/x", "-rf": "-rf", "a\nb/\x1b[2J\xff": "a\nb/\x1b[2J\xff", `..\x`: `..\x`, "%2e%2e/x": "%2e%2e/x",
			"around": "real/f",
		} {
			_, err := b.write(fileOf(path, path))
			b.must(err)
			b.want(lands, path)
			if info, err := os.Lstat(b.at("absolute")); err != nil || info.Mode()&fs.ModeSymlink == 0 {
				b.Errorf("the link is gone: %v, %v", info, err)
			}
		}
		_, err := b.write(fileOf(b.at("dir/../real/f"), "by its whole path"))
		b.must(err)
		b.want("real/f", "by its whole path")
		b.wantSecret()
		b.wantNothingLeft()
	})
}

func TestD19_SeveralFilesAreAllWrittenOrNone(t *testing.T) {
	for name, missing := range map[string]string{"tar": "", "no tar": "tar", "no ln": "ln"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, localShells["dash"])
			b.without(missing)
			testAllOrNone(b)
		})
	}
	inEachShell(t, testAllOrNone)
}

func testAllOrNone(b *bench) {
	b.put("old", "old", 0o600)
	b.put("readonly", "old", 0o444)
	big := string(noise(300_000))
	files := []sandbox.FileWrite{fileOf("old", "new"), fileOf("x/y/z", big), fileOf("empty", ""), fileOf("x/y/-n", "n")}
	_, err := b.write(append(files, fileOf("readonly", "new"))...)
	wantKind(b.T, err, sandbox.KindPermission)
	if err == nil || !strings.Contains(err.Error(), `"readonly"`) {
		b.Errorf("the error does not name the file: %v", err)
	}
	b.want("old", "old")
	b.wantGone("x")
	b.wantGone("empty")
	b.wantNothingLeft()

	written, err := b.write(files...)
	b.must(err)
	for i, f := range files {
		b.want(f.Path, string(f.Content))
		if w := written[i]; w.Size != int64(len(f.Content)) || w.Path != b.at(f.Path) || w.SHA256 != sumOf(f.Content) {
			b.Errorf("written %+v", w)
		}
	}
	if info, err := os.Stat(b.at("old")); err != nil || info.Mode() != 0o600 {
		b.Errorf("mode %v, %v", info.Mode(), err)
	}
	b.wantNothingLeft()
}

func TestD19_AppendIsRefusedWhenTheSizeDiffers(t *testing.T) {
	inEachShell(t, func(b *bench) {
		add := func(content string, before *int64) (sandbox.FileWritten, error) {
			w, err := b.write(sandbox.FileWrite{Path: "log", Content: []byte(content), Append: true, ExpectedSize: before})
			return append(w, sandbox.FileWritten{})[0], err
		}
		w, err := add("one\n", sizeOf(0))
		b.must(err)
		if w.Size != 4 || w.Bytes != 4 {
			b.Errorf("%+v", w)
		}
		w, err = add("two\n", sizeOf(4))
		b.must(err)
		if w.Size != 8 || w.Bytes != 4 {
			b.Errorf("%+v", w)
		}
		_, err = add("two\n", sizeOf(4))
		wantKind(b.T, err, sandbox.KindInvalid)
		if own := (*sandbox.Error)(nil); !errors.As(err, &own) || own.Field != "expected_size" || !strings.Contains(own.Text, "8 bytes") {
			b.Errorf("%+v", err)
		}
		_, err = add("three\n", nil)
		b.must(err)
		b.want("log", "one\ntwo\nthree\n")
		b.wantNothingLeft()
	})
}

func TestD19_CutUploadLeavesWhatWasThere(t *testing.T) {
	inEachShell(t, func(b *bench) {
		b.put("f", "old", 0o644)
		b.shell.wrapIn = func(r io.Reader) io.Reader { return io.LimitReader(r, 70_000) }
		_, err := b.write(fileOf("f", string(noise(100_000))))
		wantKind(b.T, err, sandbox.KindUnavailable)
		_, err = b.write(sandbox.FileWrite{Path: "f", Content: noise(100_000), Append: true})
		wantKind(b.T, err, sandbox.KindUnavailable)
		_, err = b.write(fileOf("f", string(noise(100_000))), fileOf("g", "g"))
		if err == nil {
			b.Error("two files of which half arrived are a success")
		}
		b.want("f", "old")
		b.wantGone("g")
		b.wantNothingLeft()
	})
}

func TestD19_CutUploadIsSeenWithoutSums(t *testing.T) {
	b := newBench(t, localShells["dash"])
	b.without("sha256sum")
	b.shell.wrapIn = func(r io.Reader) io.Reader { return io.LimitReader(r, 70_000) }
	_, err := b.write(fileOf("f", string(noise(100_000))))
	wantKind(t, err, sandbox.KindUnavailable)
	b.wantGone("f")
}

// The first of several is in place when the second cannot be put there.
func TestD19_SeveralFilesGoBackTogether(t *testing.T) {
	b := newBench(t, localShells["dash"])
	b.without("mv")
	mv := "#!/bin/sh\ncase $* in *./third) echo 'mv: No space left on device' >&2; exit 1 ;; esac\nexec /bin/mv \"$@\"\n"
	b.must(os.WriteFile(filepath.Join(b.shell.path, "mv"), []byte(mv), 0o755))
	b.put("first", "old", 0o600)
	_, err := b.write(fileOf("first", "new"), fileOf("d/second", "new"), fileOf("third", "new"))
	wantKind(t, err, sandbox.KindNoSpace)
	b.want("first", "old")
	b.wantGone("d")
	b.wantGone("third")
	b.wantNothingLeft()
}

// A script that is killed cannot clean: another exec does.
func TestD19_KilledUploadLeavesNothing(t *testing.T) {
	inEachShell(t, func(b *bench) {
		b.put("d/f", "old", 0o644)
		dead := make(chan struct{})
		b.shell.wrapIn = func(r io.Reader) io.Reader { return io.MultiReader(io.LimitReader(r, 70_000), until{dead}) }
		b.shell.started = func(p *os.Process) {
			b.shell.started, b.shell.wrapIn = nil, nil
			b.Cleanup(func() { <-dead })
			go func() {
				defer close(dead)
				b.waitStaged("d")
				_ = p.Kill()
			}()
		}
		_, err := b.write(fileOf("d/f", string(noise(100_000))))
		wantKind(b.T, err, sandbox.KindUnavailable)
		b.want("d/f", "old")
		b.wantNothingLeft()
	})
}

// waitStaged waits until a transfer has begun to stage a file in a directory.
func (b *bench) waitStaged(dir string) {
	b.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if found, _ := filepath.Glob(b.at(dir + "/.caisson-*")); len(found) > 0 {
			return
		}
	}
	b.Error("nothing is staged")
}

// until gives nothing until it is closed.
type until struct{ closed <-chan struct{} }

func (u until) Read([]byte) (int, error) {
	<-u.closed
	return 0, io.EOF
}

// TestBugEN06_ACodeWithoutAWordIsNoFaultOfTheImage: the engine gives these codes as well to
// an exec whose connection broke as it started.
func TestBugEN06_ACodeWithoutAWordIsNoFaultOfTheImage(t *testing.T) {
	for _, code := range []int{126, 127} {
		wantKind(t, scriptFailure("write", "", "", code), sandbox.KindUnavailable)
		wantKind(t, scriptFailure("write", "", "sh: can't load library 'libc.so'\n", code), sandbox.KindImageUnusable)
	}
}

func TestD19_MissingCommandIsNamed(t *testing.T) {
	for _, name := range []string{"cat", "mkdir", "chmod", "mv", "rm", "readlink"} {
		b := newBench(t, localShells["dash"])
		b.without(name)
		_, err := b.write(sandbox.FileWrite{Path: "d/f", Mode: modeOf(0o755)})
		wantKind(t, err, sandbox.KindImageUnusable)
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
	b := newBench(t, localShells["dash"])
	b.without("chmod", "mkdir", "ls", "tar")
	_, err := b.write(fileOf("f", "x"))
	b.must(err) // a new file of the default mode needs none of them
	b.want("f", "x")

	b = newBench(t, localShells["dash"])
	b.without("wc", "stat", "sha256sum", "ln", "truncate", "dd", "tar", "find", "head", "tail")
	b.put("f", "old", 0o640)
	_, err = b.write(fileOf("f", "new"), fileOf("g", "g"))
	b.must(err)
	b.want("f", "new")
	b.wantNothingLeft()
}

func TestD19_FullDiskIsNoSpace(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs a file system of its own, which only root can mount")
	}
	inEachShell(t, func(b *bench) {
		b.mkdir("small")
		b.must(syscall.Mount("tmpfs", b.at("small"), "tmpfs", 0, "size=64k,mode=0777"))
		b.Cleanup(func() { _ = syscall.Unmount(b.at("small"), syscall.MNT_DETACH) })
		b.put("small/f", strings.Repeat("a", 30_000), 0o644)
		_, err := b.write(fileOf("small/f", string(noise(60_000))))
		wantKind(b.T, err, sandbox.KindNoSpace)
		_, err = b.write(fileOf("x/y", "y"), fileOf("small/new", string(noise(60_000))))
		wantKind(b.T, err, sandbox.KindNoSpace)
		// The piece fits beside the file, and not into it.
		_, err = b.write(sandbox.FileWrite{Path: "small/f", Content: noise(25_000), Append: true})
		wantKind(b.T, err, sandbox.KindNoSpace)
		b.want("small/f", strings.Repeat("a", 30_000))
		b.wantGone("x")
		b.wantNothingLeft()
	})
}

func TestD19_WritesAreBounded(t *testing.T) {
	b := newBench(t, localShells["dash"])
	many := make([]sandbox.FileWrite, writesMost+1)
	_, err := b.write(many...)
	wantKind(t, err, sandbox.KindTooLarge)
	_, err = b.write(sandbox.FileWrite{Path: "f", Content: make([]byte, sandbox.FilePieceLimit+1)})
	wantKind(t, err, sandbox.KindTooLarge)
	_, err = b.write(fileOf("f", "1"), fileOf("./f", "2"))
	wantKind(t, err, sandbox.KindInvalid)
	_, err = b.write(sandbox.FileWrite{Path: "f", Mode: modeOf(0o755 | fs.ModeSetuid)})
	wantKind(t, err, sandbox.KindInvalid)
	if b.shell.runs != 0 {
		t.Errorf("%d execs for writes that are wrong", b.shell.runs)
	}
}
