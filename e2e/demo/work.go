package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
)

func (d *demo) lookAround(ctx context.Context) error {
	list, err := d.client.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return err
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	d.did("tools/list")
	d.got("%d tools: %s", len(names), strings.Join(names, ", "))
	if len(names) < 16 {
		return errors.New("tools are missing")
	}
	return nil
}

func (d *demo) makeSession(ctx context.Context) error {
	var made struct {
		SessionID string  `json:"session_id"`
		Image     string  `json:"image"`
		Network   string  `json:"network"`
		CPU       float64 `json:"cpu"`
		MemoryMB  int     `json:"memory_mb"`
		Pids      int     `json:"pids"`
		ExpiresAt string  `json:"expires_at"`
	}
	d.did(`session_create {"labels": {"purpose": "demo"}}`)
	if _, err := d.ok(ctx, "session_create", map[string]any{"labels": map[string]string{"purpose": "demo"}}, &made); err != nil {
		return err
	}
	d.session = made.SessionID
	d.got("%s\nimage %s, network %s, %g CPU, %d MiB, %d processes, ends at %s when idle", made.SessionID, made.Image, made.Network, made.CPU, made.MemoryMB, made.Pids, made.ExpiresAt)
	if made.Network != "none" {
		return errors.New("a sandbox has a network that nobody asked for")
	}
	return nil
}

// projectFiles reads the project as upload takes it.
func (d *demo) projectFiles() ([]map[string]string, error) {
	var files []map[string]string
	err := filepath.WalkDir(d.project, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(d.project, path)
		files = append(files, map[string]string{"path": filepath.ToSlash(name), "content": string(text)})
		return err
	})
	return files, err
}

func (d *demo) upload(ctx context.Context) error {
	files, err := d.projectFiles()
	if err != nil {
		return err
	}
	var up struct {
		Files []struct {
			Path   string
			Size   int
			SHA256 string `json:"sha256"`
		}
	}
	d.did("upload %d files", len(files))
	if _, err := d.ok(ctx, "upload", map[string]any{"session_id": d.session, "files": files}, &up); err != nil {
		return err
	}
	for _, f := range up.Files {
		d.got("%-34s %5d bytes  sha256 %s…", f.Path, f.Size, f.SHA256[:12])
	}
	if len(up.Files) != len(files) {
		return fmt.Errorf("%d files arrived", len(up.Files))
	}
	return nil
}

const runTests = "python3 -m pytest -q --color=no -p no:cacheprovider"

func (d *demo) testsFail(ctx context.Context) error {
	d.did("exec %q", runTests)
	x, err := d.exec(ctx, runTests)
	if err != nil {
		return err
	}
	d.got("%s\n%s, %s", last(x.Stdout, 12), x.Status, x.code())
	if !x.exited(1) || !strings.Contains(x.Stdout, "1 failed, 10 passed") {
		return errors.New("not the one failing test that the project has")
	}
	return nil
}

func (d *demo) mend(ctx context.Context) error {
	const before, after = "first <= entry.day < last", "first <= entry.day <= last"
	var edited struct{ Replacements int }
	d.did("edit_file tally/ledger.py")
	if _, err := d.ok(ctx, "edit_file", map[string]any{"session_id": d.session, "path": "tally/ledger.py", "old_string": before, "new_string": after}, &edited); err != nil {
		return err
	}
	d.got("- %s\n+ %s", before, after)
	if edited.Replacements != 1 {
		return fmt.Errorf("%d places changed", edited.Replacements)
	}
	return nil
}

func (d *demo) testsPass(ctx context.Context) error {
	d.did("exec %q", runTests)
	x, err := d.exec(ctx, runTests)
	if err != nil {
		return err
	}
	d.got("%s\n%s, %s", last(x.Stdout, 3), x.Status, x.code())
	if !x.exited(0) || !strings.Contains(x.Stdout, "11 passed") {
		return errors.New("the tests do not pass")
	}
	return nil
}

const (
	chartName = "months.png"
	drawChart = "python3 -m tally.chart data/year.csv " + chartName
)

func (d *demo) picture(ctx context.Context) error {
	d.did("exec %q", drawChart)
	if _, err := d.sh(ctx, drawChart); err != nil {
		return err
	}
	d.did("download %s", chartName)
	a, err := d.ok(ctx, "download", map[string]any{"session_id": d.session, "path": chartName}, nil)
	if err != nil {
		return err
	}
	for _, c := range a.Content {
		image, ok := c.(mcp.ImageContent)
		if !ok {
			continue
		}
		raw, err := base64.StdEncoding.DecodeString(image.Data)
		if err != nil {
			return err
		}
		if image.MIMEType != "image/png" || !strings.HasPrefix(string(raw), "\x89PNG") {
			return fmt.Errorf("%s, and not a PNG", image.MIMEType)
		}
		path := filepath.Join(d.pictures, chartName)
		if err := errors.Join(os.MkdirAll(d.pictures, 0o755), os.WriteFile(path, raw, 0o644)); err != nil {
			return err
		}
		d.got("image content, %s, %d bytes; saved as %s", image.MIMEType, len(raw), path)
		return nil
	}
	return errors.New("no image among the content")
}
