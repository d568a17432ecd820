package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// step is one thing that is shown and checked.
type step struct {
	name string
	do   func(context.Context) error
}

// show is what the reader sees.
type show struct {
	out   io.Writer
	steps int
}

func (s *show) title(text string) {
	fmt.Fprintf(s.out, "\n%s\n%s\n", text, strings.Repeat("=", len([]rune(text))))
}

// did says what is done, in the words of the protocol.
func (s *show) did(format string, args ...any) {
	fmt.Fprintf(s.out, "   > %s\n", fmt.Sprintf(format, args...))
}

// got says what came back.
func (s *show) got(format string, args ...any) {
	for line := range strings.Lines(fmt.Sprintf(format, args...)) {
		fmt.Fprintf(s.out, "     %s\n", strings.TrimRight(line, "\n"))
	}
}

// last is the end of a text, for outputs whose last lines tell the story.
func last(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

func (s *show) play(ctx context.Context, st step) error {
	s.steps++
	fmt.Fprintf(s.out, "\n%d. %s\n", s.steps, st.name)
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	began := time.Now()
	err := st.do(ctx)
	outcome := "held"
	if err != nil {
		outcome = "FAILED"
	}
	fmt.Fprintf(s.out, "   %s, %.2f s\n", outcome, time.Since(began).Seconds())
	return err
}
