package mcp_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"image"
	"image/png"
	"strings"
	"testing"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
)

func sum(content string) string {
	raw := sha256.Sum256([]byte(content))
	return hex.EncodeToString(raw[:])
}

func TestUploadAndDownload(t *testing.T) {
	for _, version := range []string{legacy, modern} {
		c := newRig(t).dial("inprocess", version)
		got := c.ok("upload", args{"path": "dir/a.txt", "content": "héllo\n", "mode": "0755"})
		if w := got.list("files")[0].(args); w["path"] != "/workspace/dir/a.txt" || w["bytes"] != 7.0 || w["size"] != 7.0 || w["sha256"] != sum("héllo\n") {
			t.Errorf("%v", w)
		}
		file := c.ok("download", args{"path": "dir/a.txt"})
		if file.str("content") != "héllo\n" || file.str("encoding") != "utf-8" || file.str("mode") != "0755" || file.num("size") != 7 ||
			file.num("bytes") != 7 || file.str("sha256") != sum("héllo\n") || file.str("mime_type") != "text/plain; charset=utf-8" || !strings.Contains(file.text, "héllo") {
			t.Errorf("%v\n%s", file.fields, file.text)
		}
		// Overwriting keeps the mode; several files are all written or none.
		c.ok("upload", args{"path": "dir/a.txt", "content": "new"})
		if file = c.ok("download", args{"path": "/workspace/dir/a.txt"}); file.str("mode") != "0755" || file.str("content") != "new" {
			t.Errorf("%v", file.fields)
		}
		c.want("path_escapes_workspace", "upload", args{"files": []args{{"path": "b", "content": "1"}, {"path": "../c", "content": "2"}}})
		c.want("file_not_found", "download", args{"path": "b"})
		c.want("is_a_directory", "upload", args{"path": "dir", "content": "x"})
		many := c.ok("upload", args{"files": []args{{"path": "b", "content": "AQID", "encoding": "base64", "mode": "400"}, {"path": "c", "content": ""}}})
		if len(many.list("files")) != 2 {
			t.Errorf("%v", many.fields)
		}
		c.want("permission_denied", "upload", args{"path": "b", "content": "x"})
		if file = c.ok("download", args{"path": "b"}); file.str("encoding") != "utf-8" { // three control characters are UTF-8
			t.Errorf("%v", file.fields)
		}
	}
}

func TestUploadInPieces(t *testing.T) {
	c := newRig(t).dial("inprocess", legacy)
	c.ok("upload", args{"path": "log", "content": "one", "append": true, "expected_size": 0})
	got := c.ok("upload", args{"path": "log", "content": "two", "append": true, "expected_size": 3})
	if w := got.list("files")[0].(args); w["bytes"] != 3.0 || w["size"] != 6.0 {
		t.Errorf("%v", w)
	}
	if again := c.want("invalid_argument", "upload", args{"path": "log", "content": "two", "append": true, "expected_size": 3}); again.field() != "expected_size" {
		t.Errorf("a repeated piece: %s", again.text)
	}
	for _, wrong := range []args{
		{"path": "a"},
		{"content": "a"},
		{},
		{"files": []args{}},
		{"path": "a", "content": "b", "files": []args{{"path": "a", "content": "b"}}},
		{"path": "a", "content": "b", "expected_size": 1},
		{"path": "a", "content": "b", "append": true, "extract": true},
		{"path": "a", "content": "b", "mode": "9"},
		{"path": "a", "content": "b", "mode": "4755"},
		{"path": "a", "content": "%", "encoding": "base64"},
		{"files": []args{{"path": "a", "content": "b"}}, "append": true},
	} {
		c.want("invalid_argument", "upload", wrong)
	}
	c.want("too_large", "upload", args{"path": "a", "content": strings.Repeat("x", 8<<20+1)})
}

func TestUploadExtracts(t *testing.T) {
	c := newRig(t).dial("inprocess", legacy)
	var plain bytes.Buffer
	w := tar.NewWriter(&plain)
	for name, content := range map[string]string{"a": "1", "sub/b": "22"} {
		if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o600, Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write(plain.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for i, archive := range [][]byte{plain.Bytes(), zipped.Bytes()} {
		dir := fmt.Sprintf("d%d", i)
		got := c.ok("upload", args{"path": dir, "content": base64.StdEncoding.EncodeToString(archive), "encoding": "base64", "extract": true})
		if len(got.list("files")) != 2 {
			t.Errorf("%v", got.fields)
		}
		if file := c.ok("download", args{"path": dir + "/sub/b"}); file.str("content") != "22" || file.str("mode") != "0600" {
			t.Errorf("%v", file.fields)
		}
	}
	c.server.ExpandAtMost(2 << 20)
	bomb := bytes.Buffer{}
	z = gzip.NewWriter(&bomb)
	if err := tar.NewWriter(z).WriteHeader(&tar.Header{Name: "big", Size: 1 << 40, Mode: 0o600, Typeflag: tar.TypeReg}); err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(make([]byte, 2<<20)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	c.want("too_large", "upload", args{"path": "x", "content": base64.StdEncoding.EncodeToString(bomb.Bytes()), "encoding": "base64", "extract": true})
	for _, broken := range []string{"no tar at all, but long enough to be taken for a header of one" + strings.Repeat(".", 600), "\x1f\x8bgarbage"} {
		c.want("invalid_argument", "upload", args{"path": "x", "content": base64.StdEncoding.EncodeToString([]byte(broken)), "encoding": "base64", "extract": true})
	}
}

func TestDownloadInPieces(t *testing.T) {
	c := newRig(t).dial("inprocess", legacy)
	whole := strings.Repeat("0123456789語\n", 3000)
	c.ok("upload", args{"path": "f", "content": whole})
	var all strings.Builder
	pieces := 0
	for at := int64(0); at < int64(len(whole)); pieces++ {
		got := c.ok("download", args{"path": "f", "offset": at})
		if n := len([]rune(got.str("content"))); n > 16_000 || got.num("offset") != at || got.str("encoding") != "utf-8" {
			t.Fatalf("%d characters at %d", n, got.num("offset"))
		}
		all.WriteString(got.str("content"))
		at += got.num("bytes")
		last := at == int64(len(whole))
		if (got.str("sha256") == sum(whole)) != last || strings.Contains(got.text, "bytes are left") == last {
			t.Errorf("at %d: sha256 %q, %.200s", at, got.str("sha256"), got.text)
		}
	}
	if all.String() != whole || pieces < 3 {
		t.Errorf("%d pieces do not make the whole", pieces)
	}
	if got := c.ok("download", args{"path": "f", "start_line": 2, "line_count": 2}); got.str("content") != "0123456789語\n0123456789語\n" {
		t.Errorf("%q", got.str("content"))
	}
	if got := c.ok("download", args{"path": "f", "limit": 12}); got.str("content") != "0123456789" || got.num("bytes") != 10 {
		t.Errorf("a limit inside a character: %v", got.fields)
	}
	if got := c.ok("download", args{"path": "f", "offset": -1, "encoding": "base64"}); got.str("content") != "Cg==" {
		t.Errorf("%v", got.fields)
	}
	c.want("invalid_argument", "download", args{"path": "f", "line_count": 2})
	c.want("invalid_argument", "download", args{"path": "f", "start_line": 2, "offset": 1})
	c.want("invalid_argument", "download", args{"path": "f", "limit": 8<<20 + 1})
	c.ok("upload", args{"path": "bin", "content": base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0xff}, 100_000)), "encoding": "base64"})
	if got := c.ok("download", args{"path": "bin"}); got.num("bytes") != 12_000 || len(got.str("content")) != 16_000 || strings.Contains(got.text, "////") {
		t.Errorf("%d bytes, %d characters", got.num("bytes"), len(got.str("content")))
	}
	if got := c.ok("download", args{"path": "bin", "limit": 100_000}); got.num("bytes") != 100_000 || got.str("sha256") == "" {
		t.Errorf("%d bytes", got.num("bytes"))
	}
	c.want("invalid_argument", "download", args{"path": "bin", "encoding": "utf-8"})
}

func TestDownloadOfADirectoryIsATar(t *testing.T) {
	c := newRig(t).dial("inprocess", legacy)
	c.ok("upload", args{"files": []args{{"path": "d/a", "content": "1"}, {"path": "d/b", "content": strings.Repeat("x", 100_000)}}})
	got := c.ok("download", args{"path": "d"})
	raw, err := base64.StdEncoding.DecodeString(got.str("content"))
	if err != nil || got.str("mime_type") != "application/x-tar" || got.num("bytes") != int64(len(raw)) {
		t.Fatalf("%v %d bytes", err, len(raw))
	}
	r := tar.NewReader(bytes.NewReader(raw))
	for _, name := range []string{"a", "b"} {
		if h, err := r.Next(); err != nil || h.Name != name {
			t.Errorf("%v %v", h, err)
		}
	}
}

func TestDownloadShowsImages(t *testing.T) {
	c := newRig(t).dial("inprocess", legacy)
	var buf bytes.Buffer
	picture := image.NewGray(image.Rect(0, 0, 400, 400))
	for i := range picture.Pix {
		picture.Pix[i] = byte(i * i >> 3) // does not compress, so that it is more than one piece
	}
	if err := png.Encode(&buf, picture); err != nil {
		t.Fatal(err)
	}
	encoded := base64.StdEncoding.EncodeToString(buf.Bytes())
	c.ok("upload", args{"path": "p.png", "content": encoded, "encoding": "base64"})
	got := c.ok("download", args{"path": "p.png"})
	if len(got.raw.Content) != 2 || got.fields["content"] != nil {
		t.Fatalf("%d contents, %v", len(got.raw.Content), got.fields)
	}
	if shown := got.raw.Content[1].(mcpgo.ImageContent); shown.Data != encoded || shown.MIMEType != "image/png" {
		t.Errorf("%s of %d", shown.MIMEType, len(shown.Data))
	}
	if got = c.ok("download", args{"path": "p.png", "encoding": "base64", "limit": 1 << 20}); got.str("content") != encoded || len(got.raw.Content) != 1 {
		t.Error("asked for as base64 it is no image content")
	}
	padded := append(buf.Bytes(), make([]byte, 700<<10)...)
	c.ok("upload", args{"path": "l.png", "content": base64.StdEncoding.EncodeToString(padded), "encoding": "base64"})
	if got = c.ok("download", args{"path": "l.png"}); len(got.raw.Content) != 1 || got.num("bytes") != 12_000 {
		t.Errorf("an image that is too large comes in pieces: %d", got.num("bytes"))
	}
}

func TestEditFile(t *testing.T) {
	c := newRig(t).dial("inprocess", legacy)
	c.ok("upload", args{"path": "f", "content": "a\nb\na\n", "mode": "0700"})
	c.want("string_not_unique", "edit_file", args{"path": "f", "old_string": "a", "new_string": "x"})
	c.want("string_not_found", "edit_file", args{"path": "f", "old_string": "q", "new_string": "x"})
	c.want("invalid_argument", "edit_file", args{"path": "f", "old_string": "", "new_string": "x"})
	c.want("invalid_argument", "edit_file", args{"path": "f", "old_string": "b", "new_string": "b"})
	c.want("file_not_found", "edit_file", args{"path": "g", "old_string": "b", "new_string": "c"})
	if file := c.ok("download", args{"path": "f"}); file.str("content") != "a\nb\na\n" {
		t.Errorf("something was written: %q", file.str("content"))
	}
	if got := c.ok("edit_file", args{"path": "f", "old_string": "b\n", "new_string": ""}); got.num("replacements") != 1 || got.num("size") != 4 || got.str("sha256") != sum("a\na\n") {
		t.Errorf("%v", got.fields)
	}
	if got := c.ok("edit_file", args{"path": "f", "old_string": "a", "new_string": "語", "replace_all": true}); got.num("replacements") != 2 {
		t.Errorf("%v", got.fields)
	}
	if file := c.ok("download", args{"path": "f"}); file.str("content") != "語\n語\n" || file.str("mode") != "0700" {
		t.Errorf("%v", file.fields)
	}
	c.ok("upload", args{"path": "dos", "content": "a\r\nb\r\n"})
	if got := c.want("string_not_found", "edit_file", args{"path": "dos", "old_string": "a\nb", "new_string": "x"}); !strings.Contains(got.text, `\r\n`) {
		t.Errorf("%s", got.text)
	}
	c.ok("upload", args{"path": "d/x", "content": ""})
	c.want("is_a_directory", "edit_file", args{"path": "d", "old_string": "a", "new_string": "x"})
}

func TestListFiles(t *testing.T) {
	c := newRig(t).dial("inprocess", legacy)
	c.ok("upload", args{"files": []args{{"path": "b/c", "content": "1"}, {"path": "a\xff\nx", "content": ""}, {"path": "b/d/e", "content": "22", "mode": "600"}}})
	got := c.ok("list_files", nil)
	if len(got.list("entries")) != 2 || got.fields["truncated"] != false {
		t.Errorf("%v", got.fields)
	}
	if e := c.ok("list_files", args{"path": "b", "recursive": true}).list("entries"); len(e) != 3 || e[2].(args)["path"] != "d/e" || e[2].(args)["mode"] != "0600" || e[2].(args)["size"] != 2.0 {
		t.Errorf("%v", e)
	}
	if got = c.ok("list_files", args{"recursive": true, "limit": 1}); len(got.list("entries")) != 1 || got.fields["truncated"] != true || !strings.Contains(got.text, "there are more") {
		t.Errorf("%v", got.fields)
	}
	c.want("file_not_found", "list_files", args{"path": "nope"})
	c.want("not_a_directory", "list_files", args{"path": "b/c"})
	c.want("path_escapes_workspace", "list_files", args{"path": ".."})
	c.want("invalid_argument", "list_files", args{"limit": 10_001})
}

func TestFilesAreResources(t *testing.T) {
	for _, version := range []string{legacy, modern} {
		c := newRig(t).dial("inprocess", version)
		id := c.ok("exec", args{"command": "true"}).str("session_id")
		c.ok("upload", args{"files": []args{{"path": "d/a b.txt", "content": "text"}, {"path": "/etc/bin", "content": "/w==", "encoding": "base64"}}})
		read := func(uri string) (mcpgo.ResourceContents, error) {
			got, err := c.c.ReadResource(t.Context(), mcpgo.ReadResourceRequest{Params: mcpgo.ReadResourceParams{URI: uri}})
			if err != nil {
				return nil, err
			}
			return got.Contents[0], nil
		}
		for _, uri := range []string{"/d/a%20b.txt", "/./d//x/../a%20b.txt"} {
			if got, err := read("sandbox://" + id + uri); err != nil || got.(mcpgo.TextResourceContents).Text != "text" {
				t.Errorf("%s: %v %v", uri, got, err)
			}
		}
		if got, err := read("sandbox://" + id + "//etc/bin"); err != nil || got.(mcpgo.BlobResourceContents).Blob != "/w==" {
			t.Errorf("%v %v", got, err)
		}
		for uri, code := range map[string]string{
			"sandbox://" + id + "/../etc/bin":        "path_escapes_workspace",
			"sandbox://" + id + "/%2e%2e/x":          "path_escapes_workspace",
			"sandbox://" + id + "/nope":              "file_not_found",
			"sandbox://" + id + "/d":                 "is_a_directory",
			"sandbox://" + id + "/%00":               "invalid_argument",
			"sandbox://sbx_unknown/d":                "session_not_found",
			"sandbox://" + id + "/" + "%ff%2e%2e%zz": "",
		} {
			if _, err := read(uri); err == nil || !strings.Contains(err.Error(), code) {
				t.Errorf("%s: %v, want %s", uri, err, code)
			}
		}
		templates, err := c.c.ListResourceTemplates(t.Context(), mcpgo.ListResourceTemplatesRequest{})
		if err != nil || len(templates.ResourceTemplates) != 1 {
			t.Errorf("%v %v", templates, err)
		}
	}
}
