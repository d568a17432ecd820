package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// privateDir makes the folder that only this user may enter, or checks that the one
// that is there is such: below /tmp anybody can make one first.
func privateDir(path string) (string, error) {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	var s unix.Stat_t
	if err := unix.Lstat(path, &s); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	if s.Mode&unix.S_IFMT != unix.S_IFDIR || s.Mode&0o077 != 0 || int(s.Uid) != os.Geteuid() {
		return "", fmt.Errorf("%s is not a folder of this user alone", path)
	}
	return path, nil
}

// lockFile opens a file, made where it is missing, and locks it: until the file is
// closed nobody else gets it. It waits for the lock as long as ctx allows.
func lockFile(ctx context.Context, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			break
		}
		select {
		case <-tick.C:
			continue
		case <-ctx.Done():
			err = ctx.Err()
		}
		break
	}
	_ = f.Close()
	return nil, err
}
