package executor_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"caisson/executor"
)

// secret has all that is written in other ways in JSON, addresses and shells.
const secret = `s3cr"et<\&/?=🔑 va1uE9`

const key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n-----END KEY-----\n"

// leaks lists the forms of the secrets that a text holds.
func leaks(text string) (found []string) {
	quoted, _ := json.Marshal(secret)
	for name, form := range map[string]string{
		"plain": secret, "JSON": strings.Trim(string(quoted), `"`), "base64": base64.StdEncoding.EncodeToString([]byte(secret))[:20],
		"hex": hex.EncodeToString([]byte(secret)), "address": url.QueryEscape(secret), "short": "abcd", "line of a key": "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC",
	} {
		if strings.Contains(text, form) {
			found = append(found, name)
		}
	}
	return found
}

func TestTX02_AGT04_NothingOfARulesEnvironmentComesBack(t *testing.T) {
	s, err := json.Marshal(map[string]string{"KEY": secret, "PEM": key, "SHORT": "abcd", "TINY": "no"})
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"warm", "ephemeral"} {
		r := newRig(t, rule("{name: docker, options: {mode: "+mode+", env: "+string(s)+"}}"))
		r.play("t", func(c run) executor.Result {
			spec, _ := r.fake.SpecOf(c.Session)
			if c.Env["KEY"].Reveal() != secret || len(spec.Env) != 0 {
				t.Error("the worker has not got it, or the container has, where inspect shows it")
			}
			fmt.Fprint(c.Stderr, "using "+secret+"\n"+key)
			line, _ := json.Marshal(map[string]any{"progress": 1, "message": "with " + secret})
			fmt.Fprintf(c.Stdout, "__CAISSON_TOOL_PROGRESS_%s__ %s\n", c.Nonce, line)
			result := good(map[string]any{
				"plain": secret, secret: 1, "inside": "x" + secret + "y", "base64": base64.StdEncoding.EncodeToString([]byte("user:" + secret)), "number": json.Number("12345678901234567890.10"),
				"json in a text": fmt.Sprintf("%q", secret), "hex": hex.EncodeToString([]byte(secret)), "address": "https://x/?k=" + url.QueryEscape(secret),
				"pem": key, "short": "abcd", "no": "no",
			})
			result.Error, result.VoiceText = "error "+secret, secret
			result.Metadata = map[string]json.RawMessage{"k": mustJSON(secret), secret: mustJSON(1)}
			result.DisplayData = mustJSON([]string{secret})
			result.Files = []executor.File{{Name: secret, MIMEType: "text/plain", Data: []byte("a " + secret)}}
			result.Images = []executor.File{{Name: "i", MIMEType: "image/png", Data: []byte(secret)}}
			return result
		})
		var progress []executor.Progress
		result, err := r.Call(t.Context(), caller("alice"), "t", nil, func(p executor.Progress) { progress = append(progress, p) })
		if err != nil || !result.Success || !strings.Contains(string(result.Result), "12345678901234567890.10") || !strings.Contains(string(result.Result), `"no":"no"`) {
			t.Fatalf("%+v %v", result, err)
		}
		all := fmt.Sprintf("%s %s %s %s %s %s %s %s %s %v %s", result.Result, result.Error, result.VoiceText, result.Metadata, result.DisplayData,
			result.Files[0].Name, result.Files[0].Data, result.Images[0].Name, result.Images[0].Data, progress, r.log)
		if found := leaks(all); len(found) > 0 {
			t.Errorf("%s: leaked as %q:\n%s", mode, found, all)
		}
		if len(progress) != 1 || progress[0].Text != "with [redacted]" || !strings.Contains(r.log.String(), "using [redacted]") {
			t.Errorf("%v\n%s", progress, r.log)
		}
	}
}

func TestTX02_AFailureWithoutAResultTellsNoSecretEither(t *testing.T) {
	quoted, _ := json.Marshal(secret)
	for what, print := range map[string]func(c run){
		"chatter": func(c run) { fmt.Fprintln(c.Stdout, strings.Repeat(secret+" ", 3000)) },
		// The tail that is shown begins in the middle of one.
		"a cut": func(c run) { fmt.Fprint(c.Stdout, secret+strings.Repeat("x", 4096+len(" [redacted]")-3)) },
		"no JSON": func(c run) {
			fmt.Fprintf(c.Stdout, "\n__CAISSON_TOOL_RESULT_BEGIN_%s__\n%s\n__CAISSON_TOOL_RESULT_END_%s__\n", c.Nonce, secret, c.Nonce)
		},
		"two":      func(c run) { fmt.Fprintf(c.Stdout, "%s\n__CAISSON_TOOL_RESULT_END_%s__\n", secret, c.Nonce) },
		"one line": func(c run) { fmt.Fprint(c.Stdout, secret) },
	} {
		r := newRig(t, rule("{name: docker, options: {env: {KEY: "+string(quoted)+"}}}"))
		r.play("t", func(c run) executor.Result { print(c); return executor.Result{} })
		result := r.call("t", "{}")
		if found := leaks(result.Error); result.Success || len(found) > 0 || strings.Contains(result.Error, secret[len(secret)-6:]) || strings.Contains(result.Error, secret[:6]) {
			t.Errorf("%s: leaked as %q: %s", what, found, result.Error)
		}
	}
}

func mustJSON(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

func TestTX02_AValueThatComesBackAsANumberIsTakenOut(t *testing.T) {
	r := newRig(t, rule(`{name: docker, options: {env: {PIN: "86420975", SHORT: "4711", ZEROS: "0031337", RATE: "12.75", TINY: "7", ZERO: "0000", SEVEN: "0007", LONG: "123456789012345678901234567890"}}}`))
	for value, want := range map[string]string{
		`86420975`: `"[redacted]"`, `-86420975`: `"[redacted]"`, `86420975.0`: `"[redacted]"`, `8.6420975e7`: `"[redacted]"`, `8642097500E-2`: `"[redacted]"`,
		`186420975`: `"[redacted]"`, `0.86420975`: `"[redacted]"`,
		`4711`: `"[redacted]"`, `14711`: `14711`, `31337`: `"[redacted]"`, `1275e-2`: `"[redacted]"`, `7`: `7`, `12`: `12`, `0`: `0`, `-0.0`: `-0.0`, `1e99999999999`: `"1e99999999999"`,
		`123456789012345678901234567890`:                                 `"[redacted]"`,
		`{"a":[1,86420975,true,{"b 86420975":86420975}],"c":"86420975"}`: `{"a":[1,"[redacted]",true,{"b [redacted]":"[redacted]"}],"c":"[redacted]"}`,
	} {
		r.play("t", func(c run) executor.Result {
			fmt.Fprintf(c.Stdout, "__CAISSON_TOOL_PROGRESS_%s__ {\"progress\":86420975}\n", c.Nonce)
			fmt.Fprintf(c.Stdout, "__CAISSON_TOOL_PROGRESS_%s__ {\"progress\":1,\"total\":4711}\n", c.Nonce)
			result := good(0)
			result.Result, result.DisplayData = raw(value), raw(value)
			result.Metadata = map[string]json.RawMessage{"k": raw(value)}
			return result
		})
		result, err := r.Call(t.Context(), caller("alice"), "t", nil, func(p executor.Progress) { t.Errorf("told: %v", p) })
		if err != nil || string(result.Result) != want || string(result.DisplayData) != want || string(result.Metadata["k"]) != want {
			t.Errorf("%s: %s %s %s %v", value, result.Result, result.DisplayData, result.Metadata["k"], err)
		}
	}
}
