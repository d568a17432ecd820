package executor_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"caisson/executor"
)

// holdsPart says whether a text has the beginning or the end of the secret.
func holdsPart(text string) bool {
	return strings.Contains(text, secret[:4]) || strings.Contains(text, secret[len(secret)-4:])
}

func TestTX02_ACutLeavesNoPartOfASecret(t *testing.T) {
	quoted, _ := json.Marshal(secret)
	in64 := "dXNlcjpzM2NyImV0PFwm"
	long := strings.Repeat("E", 200)
	for what, text := range map[string]string{
		"the end is there": "the command ended with exit status 1: …" + secret[1:] + long, "alone": secret[1:] + long,
		"the beginning is there": long + secret[:9], "with a count": long + secret[:len(secret)-1] + "… (70 more bytes)",
		"the middle":  strings.Repeat(secret, 9) + secret[:7] + "\n…\n" + secret[5:] + strings.Repeat(secret, 9),
		"a character": long + " \uFFFD" + "…\uFFFD" + secret[len(secret)-8:] + long, "in base64": long + in64[:len(in64)-2],
		"four bytes": long + secret[:4], "quoted": long + string(quoted[1:8]),
	} {
		r := newRig(t, rule("{name: docker, options: {env: {KEY: "+string(quoted)+", PATH: /opt/tool/bin}}}"))
		r.play("t", func(c run) executor.Result {
			fmt.Fprintln(c.Stderr, text)
			result := good(map[string]string{"value": text, secret[:6]: "a short word: " + secret[:4], "path": "/bin" + long})
			result.Error, result.Metadata = text, map[string]json.RawMessage{"m": mustJSON([]string{text})}
			return result
		})
		result := r.call("t", "{}")
		var value map[string]string
		if err := json.Unmarshal(result.Result, &value); err != nil {
			t.Fatal(err)
		}
		for _, got := range []string{value["value"], result.Error, string(result.Metadata["m"]), r.log.String()} {
			if holdsPart(got) || strings.Contains(got, in64[:len(in64)-2]) || !strings.Contains(got, "[redacted]") {
				t.Errorf("%s: %s", what, got)
			}
		}
		if value[secret[:6]] != "a short word: "+secret[:4] || value["path"] != "/bin"+long {
			t.Errorf("%s: what no cut has left is gone: %v", what, value)
		}
	}
}

func TestTX02_SpellingsOfOtherLanguagesAreFound(t *testing.T) {
	value := `k"e\y&a<b/c =é🔑z+1`
	quoted, _ := json.Marshal(value)
	for language, form := range map[string]string{
		"Python's json.dumps": `k\"e\\y&a<b/c =\u00e9\ud83d\udd11z+1`, "not only ASCII": `k\"e\\y&a<b/c =é🔑z+1`, "Go": strings.Trim(string(quoted), `"`),
		"PHP": `k\"e\\y&a<b\/c =\u00e9\ud83d\udd11z+1`, ".NET": `k\"e\\y\u0026a\u003Cb/c =\u00E9\uD83D\uDD11z+1`, "repr": `k"e\\y&a<b/c =é🔑z+1`,
		"Python's quote": "k%22e%5Cy%26a%3Cb/c%20%3D%C3%A9%F0%9F%94%91z%2B1", "safe=''": "k%22e%5Cy%26a%3Cb%2Fc%20%3D%C3%A9%F0%9F%94%91z%2B1",
		"encodeURI": "k%22e%5Cy&a%3Cb/c%20=%C3%A9%F0%9F%94%91z+1", "quote_plus": url.QueryEscape(value), "small digits": strings.ToLower(url.QueryEscape(value)),
	} {
		r := newRig(t, rule("{name: docker, options: {env: {KEY: "+string(quoted)+"}}}"))
		r.play("t", func(run) executor.Result { return good("<" + form + ">") })
		if got := string(r.call("t", "{}").Result); got != `"<[redacted]>"` && got != `"\u003c[redacted]\u003e"` {
			t.Errorf("%s: %s", language, got)
		}
	}
}
