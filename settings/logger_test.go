package settings_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"caisson/settings"
)

func TestLoggerWritesJSONWhereNobodyReads(t *testing.T) {
	var out bytes.Buffer
	settings.NewLogger(&out, load(t).MCP).Info("hello", "n", 1, "took", 1500*time.Millisecond)
	var line struct {
		Msg  string `json:"msg"`
		N    int    `json:"n"`
		Took string `json:"took"`
	}
	if err := json.Unmarshal(out.Bytes(), &line); err != nil || line.Msg != "hello" || line.N != 1 || line.Took != "1.5s" {
		t.Errorf("log line %q: %v", out.String(), err)
	}
}

func TestLoggerWritesPlainTextWhenAskedTo(t *testing.T) {
	var out bytes.Buffer
	log := settings.NewLogger(&out, load(t, "SANDBOX_MCP_LOG_FORMAT=text", "SANDBOX_MCP_LOG_LEVEL=warn").MCP)
	log.Info("quiet")
	log.Warn("loud", "n", 1)
	if text := out.String(); strings.Contains(text, "quiet") || !strings.Contains(text, "loud n=1") || strings.Contains(text, "\x1b") {
		t.Errorf("log: %q", text)
	}
}

func TestTheNullDeviceIsNoTerminal(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []*os.File{null, read, write} {
		t.Cleanup(func() { _ = f.Close() })
	}
	for name, w := range map[string]any{"null": null, "pipe": read, "buffer": &bytes.Buffer{}, "nothing": nil} {
		if settings.IsTerminal(w) {
			t.Errorf("%s counts as a terminal", name)
		}
	}
}
