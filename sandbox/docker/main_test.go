package docker

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/volume"
	"go.uber.org/goleak"
)

// TestMain ends the run with two looks: no goroutine is left, and nothing of
// this run is left on the engine.
func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "goroutines are left:", err)
			code = 1
		}
		if err := leftOnEngine(); err != nil {
			fmt.Fprintln(os.Stderr, "the engine:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// leftOnEngine names what containers and volumes of this run there are.
func leftOnEngine() error {
	cfg, err := engineConfig()
	if err != nil || cfg.Host == "" {
		return err
	}
	p, err := New(cfg)
	if err != nil {
		return err
	}
	defer func() { _ = p.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := p.connect(ctx); err != nil {
		return err
	}
	mine := filters.NewArgs(filters.Arg("label", labelInstance))
	containers, err := p.api.ContainerList(ctx, container.ListOptions{All: true, Filters: mine})
	if err != nil {
		return err
	}
	volumes, err := p.api.VolumeList(ctx, volume.ListOptions{Filters: mine})
	if err != nil {
		return err
	}
	for _, c := range containers {
		if strings.HasPrefix(c.Labels[labelInstance], testInstance) {
			err = fmt.Errorf("container %v is left", c.Names)
		}
	}
	for _, v := range volumes.Volumes {
		if strings.HasPrefix(v.Labels[labelInstance], testInstance) {
			err = fmt.Errorf("volume %s is left", v.Name)
		}
	}
	return err
}
