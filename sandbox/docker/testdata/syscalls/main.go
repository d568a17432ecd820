//go:build linux

// Command syscalls tries what a session must not be able to do, and what it must,
// and prints a line for each: its name and the error, or ok.
package main

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

func try(name string, number uintptr, args ...uintptr) {
	var a [6]uintptr
	copy(a[:], args)
	_, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	say(name, errno)
}

func say(name string, errno unix.Errno) {
	if errno == 0 {
		fmt.Println(name, "ok")
		return
	}
	fmt.Println(name, unix.ErrnoName(errno))
}

func socket(name string, family, kind, protocol int) {
	fd, err := unix.Socket(family, kind, protocol)
	if err == nil {
		_ = unix.Close(fd)
		say(name, 0)
		return
	}
	say(name, err.(unix.Errno))
}

func main() {
	var page [4096]byte
	iov := unix.Iovec{Base: &page[0], Len: 8}
	self := uintptr(unix.Getpid())
	try("io_uring_setup", unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&page)))
	try("io_uring_enter", unix.SYS_IO_URING_ENTER)
	try("io_uring_register", unix.SYS_IO_URING_REGISTER)
	try("bpf", unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&page)), 8)
	try("perf_event_open", unix.SYS_PERF_EVENT_OPEN, uintptr(unsafe.Pointer(&page)), 0, ^uintptr(0), ^uintptr(0), 0)
	try("userfaultfd", unix.SYS_USERFAULTFD, 1)
	try("keyctl", unix.SYS_KEYCTL, 0, ^uintptr(3), 0)
	try("add_key", unix.SYS_ADD_KEY)
	try("request_key", unix.SYS_REQUEST_KEY)
	try("unshare_user", unix.SYS_UNSHARE, unix.CLONE_NEWUSER)
	try("unshare_net", unix.SYS_UNSHARE, unix.CLONE_NEWNET)
	try("setns", unix.SYS_SETNS, 0, 0)
	try("mount", unix.SYS_MOUNT)
	try("fsopen", unix.SYS_FSOPEN)
	try("open_tree", unix.SYS_OPEN_TREE)
	try("move_mount", unix.SYS_MOVE_MOUNT)
	try("open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT)
	try("kexec_load", unix.SYS_KEXEC_LOAD)
	try("init_module", unix.SYS_INIT_MODULE)
	try("finit_module", unix.SYS_FINIT_MODULE)
	try("delete_module", unix.SYS_DELETE_MODULE)
	try("process_vm_readv", unix.SYS_PROCESS_VM_READV, self, uintptr(unsafe.Pointer(&iov)), 1, uintptr(unsafe.Pointer(&iov)), 1, 0)
	try("process_vm_writev", unix.SYS_PROCESS_VM_WRITEV, self, uintptr(unsafe.Pointer(&iov)), 1, uintptr(unsafe.Pointer(&iov)), 1, 0)
	try("pidfd_getfd", unix.SYS_PIDFD_GETFD)
	try("personality_no_aslr", unix.SYS_PERSONALITY, 0x0040000)
	try("swapon", unix.SYS_SWAPON)
	try("acct", unix.SYS_ACCT)
	try("quotactl", unix.SYS_QUOTACTL)
	try("chroot", unix.SYS_CHROOT, uintptr(unsafe.Pointer(&page)))
	try("reboot", unix.SYS_REBOOT)
	socket("AF_VSOCK", unix.AF_VSOCK, unix.SOCK_STREAM, 0)
	socket("AF_ALG", unix.AF_ALG, unix.SOCK_SEQPACKET, 0)
	socket("AF_PACKET", unix.AF_PACKET, unix.SOCK_RAW, 0)
	socket("AF_KEY", unix.AF_KEY, unix.SOCK_RAW, 2)
	socket("AF_XDP", unix.AF_XDP, unix.SOCK_RAW, 0)
	socket("AF_RXRPC", unix.AF_RXRPC, unix.SOCK_DGRAM, 0)
	socket("AF_TIPC", unix.AF_TIPC, unix.SOCK_DGRAM, 0)
	socket("AF_BLUETOOTH", unix.AF_BLUETOOTH, unix.SOCK_RAW, 0)
	socket("NETLINK_AUDIT", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT)
	socket("NETLINK_NETFILTER", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER)

	socket("allowed_UNIX", unix.AF_UNIX, unix.SOCK_STREAM, 0)
	socket("allowed_INET", unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	socket("allowed_INET6", unix.AF_INET6, unix.SOCK_DGRAM, 0)
	socket("allowed_NETLINK_ROUTE", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		say("allowed_socketpair", 0)
		_, _ = unix.Close(pair[0]), unix.Close(pair[1])
	} else {
		say("allowed_socketpair", err.(unix.Errno))
	}
	try("allowed_personality", unix.SYS_PERSONALITY, 0xffffffff)
	try("allowed_futex", unix.SYS_FUTEX, uintptr(unsafe.Pointer(&page)), 1, 1)
}
