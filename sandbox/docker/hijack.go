package docker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/containerd/errdefs/pkg/errhttp"
	"github.com/docker/docker/api/types/container"
)

// stream is the connection of one engine exec: both of its output streams in the
// engine's frames one way, its stdin the other.
//
// Reading, writing and closing may run concurrently. The connection's life is
// not bound to any context: close ends it.
type stream struct {
	execID string
	conn   net.Conn
	reader *bufio.Reader // may hold frames that came with the answer's header
}

// attach starts an engine exec and takes over its connection. ctx bounds the
// start alone.
//
// It is not the client library's attach: that one's answer cannot be cut short
// by a context (an engine that accepts and never answers would hang the caller)
// and throws away the engine's words when it refuses.
func (p *Provider) attach(ctx context.Context, execID string) (*stream, error) {
	return p.attachOn(ctx, p.dialAhead(ctx), execID)
}

// attachOn is attach on a connection that is being made already.
func (p *Provider) attachOn(ctx context.Context, a *ahead, execID string) (*stream, error) {
	s, err := p.takeOver(ctx, a, "/exec/"+execID+"/start", container.ExecStartOptions{})
	if err != nil {
		return nil, err
	}
	s.execID = execID
	return s, nil
}

// takeOver asks the engine for a stream in place of an answer. It is bounded like
// every call, also where the stream is part of a long transfer.
func (p *Provider) takeOver(ctx context.Context, a *ahead, path string, body any) (*stream, error) {
	<-a.done
	conn, err := a.conn, a.err
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	if err := p.stand(ctx); err != nil { // this connection is not the client's, which asks by itself
		_ = conn.Close() // nothing was sent on it
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	reader, err := p.upgrade(conn, path, body)
	if !stop() {
		err = errors.Join(context.Cause(ctx), err)
	}
	if err != nil {
		_ = conn.Close() // the start's error is the one that matters
		return nil, err
	}
	return &stream{conn: conn, reader: reader}, nil
}

// ahead is a connection on its way, so that its handshakes and another call to
// the engine take their time together. It must be attached on or dropped.
type ahead struct {
	done chan struct{}
	conn net.Conn
	err  error
}

func (p *Provider) dialAhead(ctx context.Context) *ahead {
	a := &ahead{done: make(chan struct{})}
	p.work.Go(func() {
		a.conn, a.err = p.dialer.dial(ctx, "", "")
		close(a.done)
	})
	return a
}

// drop gives the connection up.
func (a *ahead) drop() {
	<-a.done
	if a.err == nil {
		_ = a.conn.Close() // nothing was sent on it
	}
}

// upgrade sends the request and reads the answer's header.
func (p *Provider) upgrade(conn net.Conn, path string, body any) (*bufio.Reader, error) {
	content, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequest(http.MethodPost, "http://engine/v"+p.apiVersion()+path, bytes.NewReader(content)) //nolint:noctx // attach closes the connection when its context ends
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "tcp")
	if err := req.Write(conn); err != nil {
		return nil, err
	}
	reader := bufio.NewReader(conn)
	resp, err := http.ReadResponse(reader, req) //nolint:bodyclose // an upgraded answer has no body: what follows is the stream; refusal closes the others
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return nil, refusal(resp)
	}
	return reader, nil
}

// refusal makes the error of an answer that is no upgrade, of the same classes
// as the client library's.
func refusal(resp *http.Response) error {
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return err
	}
	var answer struct {
		Message string `json:"message"`
	}
	message := strings.TrimSpace(string(raw))
	if json.Unmarshal(raw, &answer) == nil && answer.Message != "" {
		message = strings.TrimSpace(answer.Message)
	}
	if resp.StatusCode < http.StatusBadRequest {
		return fmt.Errorf("the engine answered %d to an attach", resp.StatusCode)
	}
	class := errhttp.ToNative(resp.StatusCode)
	return fmt.Errorf("Error response from daemon: %s: %w", message, class)
}

// closeWrite lets the command see the end of its input. It works on TCP, unix
// sockets and TLS alike (CON-9).
func (s *stream) closeWrite() error {
	half, ok := s.conn.(interface{ CloseWrite() error })
	if !ok {
		return fmt.Errorf("connection %T cannot be half-closed", s.conn)
	}
	return half.CloseWrite()
}

// close ends the connection. A command on the other side goes on.
func (s *stream) close() { _ = s.conn.Close() }
