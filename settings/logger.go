package settings

import (
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/lmittmann/tint"
)

// NewLogger makes the program's logger on w, which is standard error: on stdio
// the protocol owns standard output. Format auto is text where w is a terminal
// and JSON elsewhere; colours are used on a terminal only, and not when the
// environment asked for none.
func NewLogger(w io.Writer, s MCP) *slog.Logger {
	var level slog.Level
	// A level that is not known has been reported as a fault; info then holds.
	if err := level.UnmarshalText([]byte(s.LogLevel)); err != nil {
		level = slog.LevelInfo
	}
	terminal := IsTerminal(w)
	if s.LogFormat == "json" || s.LogFormat != "text" && !terminal {
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: readable}))
	}
	return slog.New(tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: !terminal || NoColor()}))
}

// readable spells durations out: JSON would have them as bare nanoseconds.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		return slog.String(a.Key, a.Value.Duration().String())
	}
	return a
}

// NoColor says whether the environment asks for output without colours, by the
// convention of no-color.org.
func NoColor() bool { return os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" }

// IsTerminal says whether w is a terminal. The null device is a character
// device too, and is where services have their streams.
// What stands in front of a stream can say so itself, by a method IsTerminal.
func IsTerminal(w any) bool {
	if front, ok := w.(interface{ IsTerminal() bool }); ok {
		return front.IsTerminal()
	}
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}
