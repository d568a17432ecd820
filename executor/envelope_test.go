package executor_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"caisson/executor"
	"caisson/sandbox"
)

const nonce = "0123456789abcdef0123456789abcdef"

func raw(text string) json.RawMessage { return json.RawMessage(text) }

// full is an envelope with every field set.
func full() executor.Envelope {
	return executor.Envelope{
		ToolPath: executor.ToolkitPath, InitArgs: map[string]json.RawMessage{"command": raw(`["x"]`), "name": raw(`"K"`)}, Method: "read_file",
		Arguments: raw(`{"n":12345678901234567890.000000000001,"path":"\u00e9\u0000"}`),
		Permission: &executor.Permission{
			Session:   executor.PermissionSession{UserID: "u", TenantID: "t", Roles: []string{"admin", "zebra"}},
			RequestID: "r", Channel: "c", Extra: map[string]json.RawMessage{"k": raw("1")},
		},
		Trace:   &executor.Trace{TraceID: "a", SpanID: "b", TraceFlags: 1, TraceState: "s", ParentSpanID: "p"},
		Timeout: 1500 * time.Millisecond, Webhook: "https://hooks.example/", Nonce: nonce,
	}
}

func encode(t *testing.T, e executor.Envelope) string {
	t.Helper()
	text, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestENV01_AnEnvelopeSurvivesARoundTrip(t *testing.T) {
	for _, e := range []executor.Envelope{
		full(),
		{ToolPath: executor.CommandPath, InitArgs: map[string]json.RawMessage{}, Arguments: raw("{}"), Timeout: time.Second, Nonce: nonce},
	} {
		got, err := executor.DecodeEnvelope([]byte(encode(t, e)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(e, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestENV01_TheFieldsAreThoseOfTheWire(t *testing.T) {
	text := encode(t, executor.Envelope{ToolPath: executor.CommandPath, Nonce: nonce})
	want := `{"envelope_version":1,"tool_import_path":"caisson.worker:Command","tool_init_kwargs":{},"method_name":null,"arguments":{},` +
		`"permission_context":null,"trace_context":null,"timeout_seconds":300,"webhook_callback_url":null,"result_nonce":"` + nonce + `"}`
	if text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

// minimal is the least that decodes, with fields put in its place.
func minimal(fields string) string {
	return `{"tool_import_path":"caisson.worker:Command","result_nonce":"` + nonce + `"` + fields + `}`
}

func TestENV01_DefaultsStandForWhatIsLeftOut(t *testing.T) {
	e, err := executor.DecodeEnvelope([]byte(minimal("")))
	if err != nil || e.Timeout != executor.DefaultTimeout || string(e.Arguments) != "{}" || len(e.InitArgs) != 0 {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestENV01_ENV04_AnEnvelopeIsReadStrictly(t *testing.T) {
	for text, want := range map[string]string{
		minimal(`,"envelope_version":2`):                               "has version 2, this worker speaks 1",
		minimal(`,"envelope_version":"1"`):                             "envelope_version has the wrong type",
		minimal(`,"Arguments":{}`):                                     `no field "Arguments"`,
		minimal(`,"arguments":{},"arguments":{"a":1}`):                 `"arguments" is there twice`,
		minimal(`,"arguments":{"a":1,"a":2}`):                          "there twice",
		minimal(`,"arguments":[]`):                                     "arguments are not an object",
		minimal(`,"timeout_seconds":0`):                                "timeout_seconds is above 0",
		minimal(`,"timeout_seconds":31536001`):                         "at most 31536000",
		minimal(`,"timeout_seconds":1e300`):                            "timeout_seconds is above 0",
		minimal(`,"method_name":"x"`):                                  "a toolkit's call has a method",
		minimal(`,"tool_init_kwargs":{"executor":"docker"}`):           "names no executor",
		minimal(`,"tool_init_kwargs":[]`):                              "tool_init_kwargs are not an object",
		minimal(`,"permission_context":{"session":{"user":"x"}}`):      `no field "user"`,
		minimal(`,"permission_context":{"roles":[]}`):                  `no field "roles"`,
		minimal(`,"trace_context":{"trace_flags":"1"}`):                "trace_flags has the wrong type",
		minimal("") + "{}":                                             "no JSON value",
		"[]":                                                           "no JSON object",
		"":                                                             "no JSON value",
		minimal("\xff"):                                                "not UTF-8",
		`{"result_nonce":"` + nonce + `"}`:                             "the worker knows no tool",
		strings.Replace(minimal(""), "Command", "Popen", 1):            "the worker knows no tool",
		strings.Replace(minimal(""), nonce, strings.ToUpper(nonce), 1): "result_nonce",
	} {
		_, err := executor.DecodeEnvelope([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || sandbox.KindOf(err) != sandbox.KindInvalid {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
}

func TestENV02_AnEnvelopeNeverNamesAnExecutor(t *testing.T) {
	e := full()
	e.InitArgs["executor"] = raw(`"docker"`)
	if text := encode(t, e); strings.Contains(text, "docker") {
		t.Error(text)
	}
	if _, kept := e.InitArgs["executor"]; !kept {
		t.Error("the caller's own map was changed")
	}
}

func TestENV04_WhatTheWorkerDoesNotKnowIsNotSent(t *testing.T) {
	for name, spoil := range map[string]func(*executor.Envelope){
		"path": func(e *executor.Envelope) { e.ToolPath = "__main__:x" }, "nonce": func(e *executor.Envelope) { e.Nonce = "" },
		"arguments": func(e *executor.Envelope) { e.Arguments = raw("1") }, "broken": func(e *executor.Envelope) { e.InitArgs["x"] = raw("{") },
		"method": func(e *executor.Envelope) { e.Method = "" }, "timeout": func(e *executor.Envelope) { e.Timeout = -1 },
	} {
		e := full()
		spoil(&e)
		if text, err := e.Encode(); err == nil || sandbox.KindOf(err) != sandbox.KindInvalid {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
}

func TestENV05_RolesAreSortedAndTheCallersAreLeftAlone(t *testing.T) {
	e := full()
	e.Permission.Session.Roles = []string{"zebra", "admin"}
	if text := encode(t, e); !strings.Contains(text, `"roles":["admin","zebra"]`) {
		t.Error(text)
	}
	if e.Permission.Session.Roles[0] != "zebra" {
		t.Error("the caller's roles were sorted in place")
	}
}

func TestEachCallHasANonceOfItsOwn(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		n := executor.NewNonce()
		if len(n) != 32 || seen[n] {
			t.Fatalf("nonce %q", n)
		}
		seen[n] = true
	}
}

func TestAnEnvelopePrintsWithoutWhatItHolds(t *testing.T) {
	e := full()
	e.Arguments = raw(`{"key":"` + canary + `"}`)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb, e); strings.Contains(text, canary) || strings.Contains(text, nonce) || strings.Contains(text, fmt.Sprintf("%v", []byte(canary))) {
			t.Errorf("%s: %s", verb, text)
		}
	}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "envelope", e)
	if text := log.String(); strings.Contains(text, canary) || !strings.Contains(text, "Toolkit read_file") {
		t.Error(text)
	}
}
