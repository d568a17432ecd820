package mcp_test

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"
)

// stuckOut is a client's side that is not read any more from the first line on that
// has a mark in it.
type stuckOut struct {
	mark    string
	lines   chan struct{}
	stuck   chan struct{} // closed when it is
	release chan struct{} // lets it go on
}

func (o *stuckOut) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte(o.mark)) {
		close(o.stuck)
		<-o.release
		return 0, io.ErrClosedPipe
	}
	o.lines <- struct{}{}
	return len(line), nil
}

// A client that has stopped reading while a notice was on its way holds up neither
// the server's end nor what is told to others.
func TestAttackT53_AStdioClientThatReadsNothingDoesNotHoldUpTheEnd(t *testing.T) {
	for _, how := range []string{"end of input", "signal"} {
		c := newRig(t).dial("inprocess", legacy)
		c.server.DrainWithin(50 * time.Millisecond)
		id := c.ok("session_create", nil).session()["session_id"].(string)
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		defer cancel()
		out := &stuckOut{mark: "resources/updated", lines: make(chan struct{}, 100), stuck: make(chan struct{}), release: make(chan struct{})}
		in, client := io.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- c.server.ServeStdio(ctx, in, out) }()
		write := func(line string) {
			if _, err := io.WriteString(client, line+"\n"); err != nil {
				t.Error(err)
			}
			<-out.lines
		}
		write(stdioInitialize)
		write(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"sandbox://` + id + `/f"}}`)
		c.ok("upload", args{"session_id": id, "path": "f", "content": "x"})
		<-out.stuck

		told := make(chan struct{})
		go func() {
			defer close(told)
			c.server.MCP().SendNotificationToAllClients("notifications/tools/list_changed", nil)
		}()
		limit, over := context.WithTimeout(t.Context(), 20*time.Second)
		defer over()
		select {
		case <-told:
		case <-limit.Done():
			t.Errorf("%s: what all clients are told waits for this one", how)
		}
		if how == "signal" {
			cancel()
		} else {
			_ = client.Close()
		}
		select {
		case err := <-ended:
			if err == nil {
				t.Errorf("%s: nothing says that the client did not read", how)
			}
		case <-limit.Done():
			t.Errorf("%s: the server does not end", how)
		}
		close(out.release)
		_ = client.Close()
		<-told
	}
}
