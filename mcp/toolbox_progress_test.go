package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"caisson/executor"
	"caisson/sandbox"
)

// A tool waits to its own timeout, not to the limit of built-in ones; a call with
// progress passes on what the tool says of it.
func TestENV11_ACallWaitsToItsOwnTimeout(t *testing.T) {
	f := withTools("slow")
	r := newRig(t, f.into)
	r.server.Hurry(time.Millisecond, 5*time.Millisecond, time.Hour)
	f.work = func(ctx context.Context, _ string, _ json.RawMessage, progress func(executor.Progress)) (executor.Result, error) {
		if _, bounded := ctx.Deadline(); bounded || progress != nil {
			return executor.Result{}, sandbox.Invalid("ctx", "a deadline, or progress that nobody asked for")
		}
		return succeeded(nil), nil
	}
	c := r.dial("http", legacy)
	c.ok("slow", nil)
	told := make(chan string, 100)
	c.c.OnNotification(func(n mcpgo.JSONRPCNotification) {
		if text, ok := n.Params.AdditionalFields["message"].(string); ok {
			select {
			case told <- fmt.Sprint(text, " ", n.Params.AdditionalFields["progress"], " of ", n.Params.AdditionalFields["total"]):
			default:
			}
		}
	})
	seen := make(chan struct{})
	f.work = func(_ context.Context, _ string, _ json.RawMessage, progress func(executor.Progress)) (executor.Result, error) {
		progress(executor.Progress{Done: 2, Total: 3, Text: "halfway \x1b[31m"})
		<-seen
		return succeeded(nil), nil
	}
	answered := make(chan error, 1)
	go func() {
		_, err := c.try(t.Context(), "slow", nil, &mcpgo.Meta{ProgressToken: "p"})
		answered <- err
	}()
	for got := range told {
		if got == `halfway \x1b[31m 2 of 3` {
			break
		}
		if !strings.HasPrefix(got, "working ") {
			t.Errorf("told %s", got)
		}
	}
	close(seen)
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

// A tool that counts by itself is passed on in its numbers, also where it says no
// word, and they rise.
func TestADeclaredToolCountsInItsOwnUnit(t *testing.T) {
	f := withTools("kit_slow")
	f.all[0].Kind = executor.KindToolkit
	r := newRig(t, f.into)
	r.server.Hurry(time.Minute, time.Millisecond, 10*time.Millisecond)
	c := r.dial("http", legacy)
	told := make(chan float64, 10_000)
	c.c.OnNotification(func(n mcpgo.JSONRPCNotification) {
		if done, ok := n.Params.AdditionalFields["progress"].(float64); ok {
			told <- done
		}
	})
	var seen []float64
	f.work = func(_ context.Context, _ string, _ json.RawMessage, progress func(executor.Progress)) (executor.Result, error) {
		for done := range 4 {
			progress(executor.Progress{Done: float64(done), Total: 3})
			for got := range told { // until this number and a sign of life behind it
				if seen = append(seen, got); got > float64(done) {
					break
				}
			}
		}
		return succeeded(nil), nil
	}
	if _, err := c.try(t.Context(), "kit_slow", nil, &mcpgo.Meta{ProgressToken: 1}); err != nil {
		t.Fatal(err)
	}
	for i := range seen[1:] {
		if seen[i+1] <= seen[i] {
			t.Errorf("progress %v", seen)
		}
	}
	if !slices.Contains(seen, 1) || !slices.Contains(seen, 3) || seen[len(seen)-1] > 3.1 {
		t.Errorf("progress %v", seen)
	}
}
