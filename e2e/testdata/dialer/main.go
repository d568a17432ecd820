// Command dialer says which of the targets it is given can be reached from where it runs:
// one line each, in order. A target is tcp://host:port, udp://host:port (a datagram is sent;
// that it left says nothing) or scan://host, every TCP port of it.
package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	limit = 2 * time.Second
	width = 128 // dials at one time
)

func main() {
	var (
		all    sync.WaitGroup
		mu     sync.Mutex
		places = make(chan struct{}, width)
		dials  int
	)
	dial := func(network, address string) {
		dials++
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			conn, err := net.DialTimeout(network, address, limit)
			if err != nil {
				return
			}
			defer conn.Close()
			if network == "udp" {
				_, _ = conn.Write([]byte("a datagram"))
				return
			}
			mu.Lock()
			defer mu.Unlock()
			fmt.Println("open", address)
		})
	}
	for _, target := range os.Args[1:] {
		scheme, address, _ := strings.Cut(target, "://")
		if scheme != "scan" {
			dial(scheme, address)
			continue
		}
		for port := 1; port < 1<<16; port++ {
			dial("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
		}
	}
	all.Wait()
	fmt.Println("tried", dials)
}
