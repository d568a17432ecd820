package principal_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"caisson/principal"
)

func TestTheFileIsReadAgainWhenItChanges(t *testing.T) {
	var mu sync.Mutex
	var gone []string
	k, name, log := kept(t, twoOf(), func(o *principal.KeeperOptions) {
		o.OnGone = func(names []string) { mu.Lock(); gone = append(gone, names...); mu.Unlock() }
	})
	ctx, cancel := context.WithCancel(t.Context())
	reload := make(chan os.Signal)
	var work sync.WaitGroup
	work.Go(func() { k.Watch(ctx, reload) })
	defer work.Wait()
	defer cancel()
	d := principal.NewDoor(principal.DoorOptions{Keeper: k})
	in := func(token string) bool {
		_, err := d.Authenticate(request(t, "/mcp", "Bearer "+token))
		return err == nil
	}
	// One at fault changes nothing, and is said once a fault.
	write(t, name, "principals:\n  - name: x\n  - name: y\n")
	eventually(t, "the faults are told", func() bool { return strings.Count(log.String(), "those before stay in force") == 2 })
	if !in(tokenA) || !in(tokenB) {
		t.Error("the principals before are not in force")
	}
	// Nor does one that is not there.
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	eventually(t, "that it is missing is told", func() bool { return strings.Contains(log.String(), "no such file") })
	if !in(tokenA) {
		t.Error("the principals before are not in force")
	}
	// b is taken out, c comes; a keeps its token and is left alone.
	write(t, name, fmt.Sprintf("principals:\n  - {name: a, token_sha256: %s, max_sessions: 1}\n  - {name: c, token_sha256: %s}\n", hashOf(tokenA), hashOf("token-of-c")))
	eventually(t, "c comes in", func() bool { return in("token-of-c") })
	if in(tokenB) || !in(tokenA) {
		t.Error("b is still in, or a is not")
	}
	mu.Lock()
	if len(gone) != 1 || gone[0] != "b" {
		t.Errorf("gone: %q", gone)
	}
	gone = nil
	mu.Unlock()
	// A changed token cuts what the old one began; a signal has it read at once.
	write(t, name, fmt.Sprintf("principals:\n  - {name: a, token_sha256: %s}\n  - {name: c, token_sha256: %s}\n", hashOf(tokenB), hashOf("token-of-c")))
	reload <- syscall.SIGHUP
	eventually(t, "the new token is taken", func() bool { return in(tokenB) })
	mu.Lock()
	defer mu.Unlock()
	if in(tokenA) || len(gone) != 1 || gone[0] != "a" {
		t.Errorf("gone: %q", gone)
	}
}

func TestAFileThatOthersReadIsWarnedOf(t *testing.T) {
	k, name, log := kept(t, twoOf())
	if strings.Contains(log.String(), "WARN") {
		t.Error(log)
	}
	if err := os.Chmod(name, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := k.Reload(); err != nil || !strings.Contains(log.String(), "mode=0644") {
		t.Errorf("%v %s", err, log)
	}
	if _, err := principal.Open(principal.KeeperOptions{File: filepath.Dir(name)}); err == nil {
		t.Error("a directory is taken")
	}
}
