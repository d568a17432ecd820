package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

const (
	methodNotFound = -32601
	messageLost    = -32000 // an answer that never came whole; our own
	// longestID bounds the id of a server's request that we answer, in bytes.
	longestID = 256
	// cancelTime bounds the sending of a cancellation to a server that does not read.
	cancelTime = 100 * time.Millisecond
)

// message is any message of JSON-RPC.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// refusal is an error that the server answered with.
type refusal struct {
	name string
	rpcError
}

func (r *refusal) Error() string {
	if r.Code == messageLost {
		return fmt.Sprintf("the server of the toolkit %s: %s", r.name, r.Message)
	}
	return fmt.Sprintf("the server of the toolkit %s refused the call: %s (code %d)", r.name, r.Message, r.Code)
}

// unanswered is the end of a call before its answer has come.
type unanswered struct {
	error
	junk string // what was ignored meanwhile, in words
}

func (u *unanswered) Unwrap() error { return u.error }

// write sends what is queued until the server ends.
func (s *server) write() {
	defer func() { _ = s.pipes.stdin.Close() }()
	for {
		select {
		case line := <-s.out:
			if _, err := s.pipes.stdin.Write(line); err != nil {
				return
			}
		case <-s.ending:
			return
		}
	}
}

// send queues a message. It fails when ctx ends or the server is gone.
func (s *server) send(ctx context.Context, m message) error {
	m.Version = "2.0"
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	select {
	case s.out <- append(line, '\n'):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.gone:
		return s.died()
	}
}

// request asks the server and waits for the answer. progress, where there is one, is
// called with the parameters of each progress of this request. One that ctx ends is
// cancelled at the server.
func (s *server) request(ctx context.Context, method string, params func(id int64) any, progress func(json.RawMessage)) (json.RawMessage, error) {
	own := &waiting{answer: make(chan message, 1), progress: progress}
	s.mu.Lock()
	s.next++
	id := s.next
	s.waiting[id] = own
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.waiting, id)
		s.mu.Unlock()
	}()
	text, err := json.Marshal(params(id))
	if err != nil {
		return nil, err
	}
	if err := s.send(ctx, message{ID: json.RawMessage(strconv.FormatInt(id, 10)), Method: method, Params: text}); err != nil {
		return nil, err
	}
	select {
	case answer := <-own.answer:
		if answer.Error != nil {
			return nil, &refusal{s.name, *answer.Error}
		}
		return answer.Result, nil
	case <-ctx.Done():
		s.cancel(id)
		s.mu.Lock()
		defer s.mu.Unlock()
		return nil, &unanswered{ctx.Err(), s.ignored()}
	case <-s.gone:
		select {
		case answer := <-own.answer: // its last deed
			if answer.Error == nil {
				return answer.Result, nil
			}
		default:
		}
		return nil, s.died()
	}
}

// cancel tells the server that nobody waits for an answer any more.
func (s *server) cancel(id int64) {
	ctx, done := context.WithTimeout(context.Background(), cancelTime)
	defer done()
	text := json.RawMessage(fmt.Sprintf(`{"requestId":%d,"reason":"the caller has gone"}`, id))
	_ = s.send(ctx, message{Method: "notifications/cancelled", Params: text}) // it may not read at all
}

// receive takes one line of the server. What is no message of ours is counted and
// ignored, unless it was most likely an answer.
func (s *server) receive(line []byte, whole bool) {
	if !whole {
		s.tooLong()
		return
	}
	var m message
	if json.Unmarshal(line, &m) == nil {
		s.take(m)
		return
	}
	var batch []message // as revision 2025-03-26 has them
	if json.Unmarshal(line, &batch) == nil {
		for _, m := range batch {
			s.take(m)
		}
		return
	}
	s.unreadable(line)
}

func (s *server) take(m message) {
	switch {
	case m.Method != "" && len(m.ID) > 0:
		s.answer(m)
	case m.Method != "":
		s.notified(m)
	default:
		s.answered(m)
	}
}

func (s *server) ignore() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.junk++
}

// answer refuses what the server asks of us: it is offered nothing, neither models
// nor folders nor people. Where it does not read, its questions are dropped.
func (s *server) answer(m message) {
	if len(m.ID) > longestID {
		s.ignore()
		return
	}
	reply := message{Version: "2.0", ID: m.ID, Error: &rpcError{methodNotFound, "method not found"}}
	if m.Method == "ping" {
		reply = message{Version: "2.0", ID: m.ID, Result: json.RawMessage("{}")}
	} else {
		s.ignore()
	}
	line, err := json.Marshal(reply)
	if err != nil {
		return
	}
	select {
	case s.out <- append(line, '\n'):
	default:
		s.ignore()
	}
}

func (s *server) notified(m message) {
	switch m.Method {
	case "notifications/progress":
		var p struct {
			Token int64 `json:"progressToken"`
		}
		if json.Unmarshal(m.Params, &p) != nil {
			s.ignore()
			return
		}
		s.mu.Lock()
		own := s.waiting[p.Token]
		s.mu.Unlock()
		if own != nil && own.progress != nil {
			own.progress(m.Params)
		}
	case "notifications/tools/list_changed":
		s.mu.Lock()
		s.changed = true
		s.mu.Unlock()
	}
}

// answered hands an answer to who waits for it, the first one only.
func (s *server) answered(m message) {
	id, err := strconv.ParseInt(string(m.ID), 10, 64)
	s.mu.Lock()
	own := s.waiting[id]
	if err != nil || own == nil || m.Result == nil && m.Error == nil {
		s.junk++
		own = nil
	} else {
		delete(s.waiting, id)
	}
	s.mu.Unlock()
	if own != nil {
		m.Result = append(json.RawMessage(nil), m.Result...) // the line is the reader's
		own.answer <- m
	}
}
