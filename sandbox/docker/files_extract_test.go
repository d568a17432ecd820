package docker

import (
	"archive/tar"
	"bytes"
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

// packed makes a tar; an entry with content is a file unless it says otherwise.
func packed(t testing.TB, entries ...tarEntry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		hdr := e.Header
		if hdr.Mode == 0 {
			hdr.Mode = 0o644
		}
		if hdr.Typeflag == 0 {
			hdr.Typeflag = tar.TypeReg
		}
		hdr.Size = int64(len(e.content))
		if err := w.WriteHeader(&hdr); err != nil {
			t.Fatalf("%+v: %v", hdr, err)
		}
		if _, err := io.WriteString(w, e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

type tarEntry struct {
	tar.Header
	content string
}

func tarFile(name, content string) tarEntry { return tarEntry{tar.Header{Name: name}, content} }

func tarKind(kind byte, name, link string) tarEntry {
	return tarEntry{tar.Header{Typeflag: kind, Name: name, Linkname: link, Mode: 0o755}, ""}
}

func (b *bench) extractTar(dir string, archive []byte) ([]sandbox.FileWritten, error) {
	return b.WriteArchive(context.Background(), dir, bytes.NewReader(archive))
}

func TestD19_ArchiveIsLaidOut(t *testing.T) {
	inEachShell(t, func(b *bench) {
		b.put("out/kept", "kept", 0o644)
		b.put("out/sub/replaced", "old", 0o600)
		b.put("out/sub/kept too", "kept", 0o644)
		b.link("/etc", "out/linked")
		long := strings.Repeat("long/", 40) + strings.Repeat("n", 200)
		entries := []tarEntry{
			tarKind(tar.TypeDir, "./", ""),
			tarKind(tar.TypeDir, "new/", ""),
			tarFile("new/f", "content"),
			tarFile("./sub/replaced", "new"),
			tarFile("sub/deep/er", string(noise(200_000))),
			tarFile(long, "long"),
			tarFile("linked", "no link any more"),
			{tar.Header{Name: "run.sh", Mode: 0o777}, "#!"},
			{tar.Header{Name: "private", Mode: 0o600}, "p"},
			tarKind(tar.TypeSymlink, "new/link", "../sub/deep/er"),
			tarKind(tar.TypeLink, "twin", "new/f"),
			{tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "as git makes it"}}, ""},
		}
		for _, name := range oddNames {
			entries = append(entries, tarFile("odd/"+name, name))
		}
		archive := packGlobal(b.T, entries)
		written, err := b.extractTar("out", archive)
		b.must(err)
		for _, e := range entries {
			if e.Typeflag == 0 {
				b.want("out/"+e.Name, e.content)
			}
		}
		b.want("out/kept", "kept")
		b.want("out/sub/kept too", "kept")
		b.want("out/twin", "content")
		if target, err := os.Readlink(b.at("out/new/link")); err != nil || target != "../sub/deep/er" {
			b.Errorf("%q, %v", target, err)
		}
		for name, mode := range map[string]fs.FileMode{"run.sh": 0o755, "private": 0o600, "new/f": 0o644, "new": 0o755 | fs.ModeDir} {
			info, err := os.Stat(b.at("out/" + name))
			b.must(err)
			if info.Mode() != mode || os.Getuid() == 0 && info.Sys().(*syscall.Stat_t).Uid != sessionUID {
				b.Errorf("%s: %v, %+v", name, info.Mode(), info.Sys())
			}
		}
		if len(written) != 7+len(oddNames) || written[0].Path != b.at("out/new/f") || written[0].SHA256 != sumOf([]byte("content")) || written[0].Size != 7 {
			b.Errorf("%d written: %+v", len(written), written[0])
		}
		b.wantNothingLeft()

		_, err = b.extractTar("fresh/place", packed(b.T, tarFile("f", "f")))
		b.must(err)
		b.want("fresh/place/f", "f")
		_, err = b.extractTar(".", packed(b.T, tarFile("f", "f")))
		b.must(err)
		b.want("f", "f")
		_, err = b.extractTar(b.at("abs"), packed(b.T, tarFile("f", "f")))
		b.must(err)
		b.want("abs/f", "f")
		b.wantNothingLeft()
	})
}

// packGlobal is packed with a global header among the entries.
func packGlobal(t testing.TB, entries []tarEntry) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, e := range entries {
		if e.Typeflag == tar.TypeXGlobalHeader {
			w := tar.NewWriter(&out)
			if err := errors.Join(w.WriteHeader(&e.Header), w.Flush()); err != nil {
				t.Fatal(err)
			}
			continue
		}
		one := packed(t, e)
		out.Write(one[:len(one)-1024])
	}
	out.Write(make([]byte, 1024))
	return out.Bytes()
}

// refusedTars are archives of which nothing may arrive.
func refusedTars(t *testing.T) map[string]struct {
	archive []byte
	kind    sandbox.Kind
} {
	type row = struct {
		archive []byte
		kind    sandbox.Kind
	}
	bad := func(kind sandbox.Kind, entries ...tarEntry) row {
		return row{packed(t, append([]tarEntry{tarFile("good", "good")}, entries...)...), kind}
	}
	mode := func(m int64) tarEntry { return tarEntry{tar.Header{Name: "s", Mode: m}, "x"} }
	whole := packed(t, tarFile("good", "good"), tarFile("f", string(noise(5000))))
	sparse := packed(t, tarFile("good", "good"))
	sparse = append(sparse[:1024], oldSparse()...)
	invalid, escapes, large := sandbox.KindInvalid, sandbox.KindPathEscapes, sandbox.KindTooLarge
	return map[string]row{
		"dot dot":            bad(escapes, tarFile("../x", "x")),
		"dot dot inside":     bad(escapes, tarFile("a/../../x", "x")),
		"harmless dot dot":   bad(escapes, tarFile("a/../x", "x")),
		"absolute":           bad(escapes, tarFile("/etc/x", "x")),
		"through a link":     bad(invalid, tarKind(tar.TypeSymlink, "l", "sub"), tarFile("l/x", "x")),
		"link out":           bad(invalid, tarKind(tar.TypeSymlink, "l", "../x")),
		"absolute link":      bad(invalid, tarKind(tar.TypeSymlink, "l", "/etc")),
		"hard link out":      bad(invalid, tarKind(tar.TypeLink, "l", "/etc/passwd")),
		"hard link up":       bad(invalid, tarKind(tar.TypeLink, "l", "../secret")),
		"hard link later":    bad(invalid, tarKind(tar.TypeLink, "l", "f"), tarFile("f", "f")),
		"hard link to link":  bad(invalid, tarKind(tar.TypeSymlink, "l", "x"), tarKind(tar.TypeLink, "m", "l")),
		"block device":       bad(invalid, tarKind(tar.TypeBlock, "d", "")),
		"char device":        bad(invalid, tarKind(tar.TypeChar, "d", "")),
		"fifo":               bad(invalid, tarKind(tar.TypeFifo, "d", "")),
		"setuid":             bad(invalid, mode(0o4755)),
		"setgid":             bad(invalid, mode(0o2755)),
		"sticky":             bad(invalid, mode(0o1755)),
		"twice":              bad(invalid, tarFile("good", "bad")),
		"twice, other text":  bad(invalid, tarFile("./good", "bad")),
		"file and directory": bad(invalid, tarFile("good/x", "bad")),
		"directory and file": bad(invalid, tarFile("d/x", "x"), tarFile("d", "x")),
		"directory, link":    bad(invalid, tarFile("d/x", "x"), tarKind(tar.TypeSymlink, "d", "good")),
		"our own name":       bad(invalid, tarFile(".caisson-sums", "x")),
		"long name":          bad(large, tarFile(strings.Repeat("n", 256), "x")),
		"deep":               bad(large, tarFile(strings.Repeat("d/", 64)+"f", "x")),
		"pax path":           bad(escapes, tarEntry{tar.Header{Name: "/" + strings.Repeat("e", 120), Format: tar.FormatPAX}, "x"}),
		"old sparse":         {sparse, invalid},
		"cut in a header":    {whole[:1200], invalid},
		"cut in a file":      {whole[:3000], invalid},
		"no tar":             {noise(3000), invalid},
		"nothing":            {nil, invalid},
	}
}

// oldSparse is a GNU header that says of 512 bytes that they are 1 TiB.
func oldSparse() []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	_ = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "sparse", Mode: 0o644, Size: 512, Format: tar.FormatGNU})
	block := out.Bytes()
	block[156] = 'S'
	copy(block[386:], "00000000000\x0000000001000\x00")
	copy(block[483:], "\x80\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00")
	sum := 0
	copy(block[148:], "        ")
	for _, c := range block {
		sum += int(c)
	}
	copy(block[148:], []byte{'0', '0' + byte(sum>>12&7), '0' + byte(sum>>9&7), '0' + byte(sum>>6&7), '0' + byte(sum>>3&7), '0' + byte(sum&7), 0, ' '})
	return append(append(block, make([]byte, 512)...), make([]byte, 1024)...)
}

func TestAttackT37_ArchivesThatLeaveAreRefused(t *testing.T) { testRefusedTars(t) }

func testRefusedTars(t *testing.T) {
	inEachShell(t, func(b *bench) {
		b.put("keep", "keep", 0o644)
		for name, row := range refusedTars(b.T) {
			_, err := b.extractTar("x/y", row.archive)
			if sandbox.KindOf(err) != row.kind {
				b.Errorf("%s: %v, of kind %v, want %v", name, err, sandbox.KindOf(err), row.kind)
			}
			b.wantGone("x")
		}
		b.wantSecret()
		b.wantNothingLeft()
	})
}

func TestBugFS03_ArchivesDoNotFollowPlantedLinks(t *testing.T) {
	inEachShell(t, func(b *bench) {
		b.link("/etc", "d/l")
		b.link("..", "up")
		b.link("../secret", "d/file")
		b.put("d/plain", "plain", 0o644)
		b.put("d/readonly", "old", 0o444)
		b.put("d/dir/x", "x", 0o644)
		b.must(syscall.Mkfifo(b.at("d/fifo"), 0o600))
		for name, kind := range map[string]sandbox.Kind{
			"l/x": sandbox.KindPathEscapes, "plain/x": sandbox.KindNotDirectory, "readonly": sandbox.KindPermission,
			"dir": sandbox.KindIsDirectory, "fifo": sandbox.KindInvalid,
		} {
			_, err := b.extractTar("d", packed(b.T, tarFile("new", "new"), tarFile(name, "bad")))
			wantKind(b.T, err, kind)
			if err != nil && !strings.Contains(err.Error(), "d/"+strings.TrimSuffix(name, "/x")) {
				b.Errorf("the entry is not named: %v", err)
			}
			b.wantGone("d/new")
		}
		_, err := b.extractTar("up", packed(b.T, tarFile("secret", "bad")))
		wantKind(b.T, err, sandbox.KindPathEscapes)
		_, err = b.extractTar("d/plain", packed(b.T, tarFile("x", "bad")))
		wantKind(b.T, err, sandbox.KindNotDirectory)
		_, err = b.extractTar("d", packed(b.T, tarFile("file", "takes the link's place")))
		b.must(err)
		b.want("d/file", "takes the link's place")
		b.wantSecret()
		b.wantNothingLeft()
	})
}

func TestAttackT39_MetadataOfAnArchiveIsNormalised(t *testing.T) {
	b := newBench(t, localShells["dash"])
	when := map[string]time.Time{"1901": time.Unix(-1<<31, 0), "9999": time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), "2001": time.Unix(1e9, 0)}
	var entries []tarEntry
	for name, at := range when {
		entries = append(entries, tarEntry{tar.Header{
			Name: name, Uid: 4294967295, Gid: 0, Uname: "root", ModTime: at, Format: tar.FormatPAX,
			PAXRecords: map[string]string{"SCHILY.xattr.security.capability": "x", "SCHILY.xattr.user.x": "y"},
		}, name})
	}
	entries = append(entries, tarFile("case", "1"), tarFile("CASE", "2"))
	_, err := b.extractTar("d", packed(t, entries...))
	b.must(err)
	for name, at := range when {
		info, err := os.Stat(b.at("d/" + name))
		b.must(err)
		if os.Getuid() == 0 && info.Sys().(*syscall.Stat_t).Uid != sessionUID {
			t.Errorf("%s belongs to %d", name, info.Sys().(*syscall.Stat_t).Uid)
		}
		if y := info.ModTime().Year(); y != 1970 && !info.ModTime().Equal(at) {
			t.Errorf("%s is of %v", name, info.ModTime())
		}
		if n, err := syscall.Listxattr(b.at("d/"+name), make([]byte, 100)); n > 0 {
			t.Errorf("%s has attributes: %d, %v", name, n, err)
		}
	}
	b.want("d/case", "1")
	b.want("d/CASE", "2")
}

func TestAttackT40_NoSpecialFileIsMade(t *testing.T) {
	testRefusedTars(t)
	b := newBench(t, localShells["dash"])
	_, err := b.extractTar("d", packed(t, tarEntry{tar.Header{Name: "f", Mode: 0o777}, "x"}, tarEntry{tar.Header{Typeflag: tar.TypeDir, Name: "e/", Mode: 0o777}, ""}))
	b.must(err)
	b.must(filepath.WalkDir(b.root, func(path string, d fs.DirEntry, err error) error {
		if info, _ := d.Info(); info.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != 0 || info.Mode().Perm()&0o022 != 0 {
			t.Errorf("%s: %v", path, info.Mode())
		}
		return err
	}))
}

func TestAttackT23_BombsAreRefused(t *testing.T) {
	b := newBench(t, localShells["dash"])
	small := tarLimits{bytes: 100_000, entries: 50, names: 10_000, depth: 8}
	many := make([]tarEntry, 51)
	for i := range many {
		many[i] = tarFile(strings.Repeat("i", i+1), "")
	}
	names := make([]tarEntry, 50)
	for i := range names {
		names[i] = tarFile(strings.Repeat("n", 202+i/2)+strings.Repeat("m", i), "")
	}
	for name, archive := range map[string]io.Reader{
		"bytes":      bytes.NewReader(packed(t, tarFile("a", string(noise(60_000))), tarFile("b", string(noise(60_000))))),
		"entries":    bytes.NewReader(packed(t, many...)),
		"names":      bytes.NewReader(packed(t, names...)),
		"depth":      bytes.NewReader(packed(t, tarFile(strings.Repeat("d/", 8)+"f", ""))),
		"million":    bytes.NewReader(packed(t, tarFile(strings.Repeat("d/", 2000)+"f", ""))),
		"says 1 TiB": io.MultiReader(bytes.NewReader(hugeHeader(t)), zeros{}),
	} {
		_, err := b.extract(context.Background(), "d", archive, small)
		if sandbox.KindOf(err) != sandbox.KindTooLarge {
			t.Errorf("%s: %v, of kind %v", name, err, sandbox.KindOf(err))
		}
		b.wantGone("d")
	}
	paxBomb := append(packed(t, tarFile("a", ""))[:512], paxHeader(1<<30)...)
	_, err := b.extract(context.Background(), "d", io.MultiReader(bytes.NewReader(paxBomb), zeros{}), small)
	wantKind(t, err, sandbox.KindInvalid)
	b.wantGone("d")
	b.wantNothingLeft()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func hugeHeader(t *testing.T) []byte {
	var out bytes.Buffer
	if err := tar.NewWriter(&out).WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "f", Mode: 0o644, Size: 1 << 40}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// paxHeader is the header of an extended header of the given size.
func paxHeader(size int64) []byte {
	var out bytes.Buffer
	_ = tar.NewWriter(&out).WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "x", Mode: 0o644, Size: size, Format: tar.FormatUSTAR})
	block := out.Bytes()
	sum := 'x' - int(block[156])
	block[156] = 'x'
	for i, c := range block {
		if i < 148 || i >= 156 {
			sum += int(c)
		} else {
			sum += ' '
		}
	}
	sum -= 'x' - '0'
	copy(block[148:], []byte{'0' + byte(sum>>15&7), '0' + byte(sum>>12&7), '0' + byte(sum>>9&7), '0' + byte(sum>>6&7), '0' + byte(sum>>3&7), '0' + byte(sum&7), 0, ' '})
	return block
}

func TestD19_CutArchiveLeavesNothing(t *testing.T) {
	inEachShell(t, func(b *bench) {
		b.put("d/a", "old", 0o644)
		archive := packed(b.T, tarFile("a", "new"), tarFile("b", string(noise(50_000))))
		for _, cut := range []int64{0, 100, 512, 1024, 30_000, 52_000, 52_600} {
			b.shell.wrapIn = func(r io.Reader) io.Reader { return io.LimitReader(r, cut) }
			_, err := b.extractTar("d", archive)
			if err == nil {
				b.Errorf("cut at %d: a success", cut)
			}
			b.want("d/a", "old")
			b.wantGone("d/b")
		}
		b.wantNothingLeft()
	})
	b := newBench(t, localShells["dash"])
	b.without("tar")
	_, err := b.extractTar("d", packed(t, tarFile("a", "a")))
	wantKind(t, err, sandbox.KindImageUnusable)
}
