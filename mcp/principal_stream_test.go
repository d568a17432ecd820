package mcp_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"caisson/mcp"
	"caisson/principal"
)

const listenBody = `{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["sandbox://x/f"]},"_meta":{` + modernMeta + `}}}`

// listen asks for the stream of a client of the stateless protocol.
func listen(t *testing.T, web *httptest.Server, headers ...string) *talk {
	t.Helper()
	return open(t, web, http.MethodPost, "/mcp", listenBody, append(headers, "MCP-Protocol-Version", modern, "Mcp-Method", "subscriptions/listen")...)
}

// A subscription is a stream too: it does not outlive the token that it was opened
// with, whichever way it was asked for.
func TestAttackT46_ASubscriptionEndsWithItsToken(t *testing.T) {
	for _, how := range []string{"http", "sse"} {
		e := &ending{}
		far := time.Now().Add(time.Hour)
		e.until.Store(&far)
		web := newRig(t, func(o *mcp.Options) { o.Authenticator = e }).web()
		stream, where := connect(t, web)
		near := time.Now().Add(time.Second)
		e.until.Store(&near)
		if how == "http" {
			stream = listen(t, web)
		} else if response, body := post(t, web, where, listenBody); response.StatusCode != http.StatusAccepted {
			t.Fatalf("%s %s", response.Status, body)
		}
		if m := stream.next(); m.Method != "notifications/subscriptions/acknowledged" {
			t.Errorf("%s: %s %s", how, m.Method, m.Error)
		}
		if m := stream.next(); string(m.ID) != "7" || m.Result == nil {
			t.Errorf("%s: %s %s", how, m.Method, m.Error)
		}
		if time.Now().Before(near) {
			t.Errorf("%s: the subscription ended before its token", how)
		}
	}
}

// Subscriptions count among the streams of a principal, and another's are not
// touched by them.
func TestAttackT53_SubscriptionsOfOnePrincipalAreBounded(t *testing.T) {
	s := newShared(t, "", unlimited)
	stream, where := s.sse(t, tokenA) // the first of 256
	defer func() { _ = stream.Body.Close() }()
	post(t, s.site, where, listenBody, "Authorization", "Bearer "+tokenA)
	readUntil(t, stream, "acknowledged") // and the second
	refused := 0
	for range 260 {
		k := listen(t, s.site, "Authorization", "Bearer "+tokenA)
		if k.response.StatusCode == http.StatusTooManyRequests {
			refused++
			if m := k.next(); !strings.Contains(string(m.Error), "256 streams") || string(m.ID) != "7" || k.response.Header.Get("Retry-After") == "" {
				t.Errorf("%s %s", m.ID, m.Error)
			}
		}
	}
	if refused != 260-254 {
		t.Errorf("%d subscriptions were refused", refused)
	}
	if response, body := post(t, s.site, where, strings.Replace(listenBody, "7", "8", 1), "Authorization", "Bearer "+tokenA); response.StatusCode != http.StatusTooManyRequests {
		t.Errorf("over SSE: %s %s", response.Status, body)
	}
	if k := listen(t, s.site, "Authorization", "Bearer "+tokenB); k.response.StatusCode != http.StatusOK {
		t.Errorf("b: %s", k.response.Status)
	}
	s.as(tokenA, "http", modern).ok("session_list", nil)
}

// leaving is taken out once it has been let in.
type leaving struct{ asked atomic.Int64 }

func (l *leaving) Authenticate(*http.Request) (mcp.Principal, error) {
	if l.asked.Add(1) > 1 {
		return mcp.Principal{}, &principal.Refusal{Status: http.StatusUnauthorized, Text: "gone"}
	}
	return mcp.Principal{Name: "a"}, nil
}

// A principal that is taken out while its request comes in keeps no subscription.
func TestAttackT46_ASubscriptionIsNotKeptByWhoIsTakenOutMeanwhile(t *testing.T) {
	web := newRig(t, func(o *mcp.Options) { o.Authenticator = &leaving{} }).web()
	k := listen(t, web)
	if m := k.next(); k.response.StatusCode != http.StatusUnauthorized || !strings.Contains(string(m.Error), "gone") {
		t.Errorf("%s %s %s", k.response.Status, m.Method, m.Error)
	}
}
