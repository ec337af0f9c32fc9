// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package redirect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/tulle-mesh/tulle/internal/clock"
)

// What follows runs in namespaces of its own: a pod with Envoy's two ports and an application, joined to another host.

// The addresses of the pod, of the other host, and one of the other host's that is ignored; of both families.
var (
	podIPs     = []string{"10.9.0.1", "fd00:9::1"}
	hostIPs    = []string{"10.9.0.2", "fd00:9::2"}
	ignoredIPs = []string{"10.9.0.3", "fd00:9::3"}
)

const (
	appPort      = 8080 // captured
	uncaptured   = 9999 // the application's too, but not captured
	farPort      = 80   // of the other host
	ignoredPort  = 81   // of the other host, ignored
	ignoredSSH   = 22   // of the other host, always ignored
	direct       = "direct"
	envoyUserID  = 1337
	dialTimeout  = 3 * time.Second
	prefixLength = "/24"
)

func checkSingleUser() error {
	err := Apply(context.Background(), podConfig(), slog.New(slog.DiscardHandler))
	if err == nil {
		return errors.New("no error")
	}
	want := "connections of user 1337 cannot be told apart: this user namespace has no user 1337"
	if !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		return fmt.Errorf("want one line that begins %q: %w", want, err)
	}
	return nil
}

// podConfig has more ports than one match of multiport takes.
func podConfig() Config {
	c := Config{User: new(uint32(envoyUserID)), IngressPort: 15000, EgressPort: 15001, IgnoredPorts: []uint16{ignoredPort}, IPv6: true}
	for port := uint16(8061); port <= appPort; port++ {
		c.AppPorts = append(c.AppPorts, port)
	}
	for _, ip := range ignoredIPs {
		address := netip.MustParseAddr(ip)
		c.IgnoredIPs = append(c.IgnoredIPs, netip.PrefixFrom(address, address.BitLen()))
	}
	return c
}

func checkTraffic() error {
	host, err := joinHost()
	if err != nil {
		return err
	}
	if err := listenEverywhere(host); err != nil {
		return err
	}
	ctx, log, c := context.Background(), slog.New(slog.DiscardHandler), podConfig()
	if err := errors.Join(Apply(ctx, c, log), checkCaptured(host)); err != nil {
		return fmt.Errorf("applied: %w", err)
	}
	once, err := rules()
	if err != nil {
		return err
	}
	if err := errors.Join(Apply(ctx, c, log), checkCaptured(host)); err != nil {
		return fmt.Errorf("applied twice: %w", err)
	}
	if twice, err := rules(); err != nil || once != twice {
		return errors.Join(err, fmt.Errorf("a second Apply changes the rules:\n%s\ninstead of\n%s", twice, once))
	}
	c.AppPorts = nil
	if err := errors.Join(Apply(ctx, c, log), expect("an application port that is no longer captured", host.dial, podIPs, appPort, direct)); err != nil {
		return err
	}
	for range 2 {
		if err := errors.Join(Undo(ctx, c), expect("outbound after undo", dial, hostIPs, farPort, direct)); err != nil {
			return fmt.Errorf("undo: %w", err)
		}
	}
	if left, err := rules(); err != nil || strings.Contains(left, "-A ") || strings.Contains(left, "APPMESH") {
		return errors.Join(err, fmt.Errorf("undo leaves something:\n%s", left))
	}
	return nil
}

// checkCaptured dials all that matters, over both families.
func checkCaptured(host *otherHost) error {
	return errors.Join(
		expect("outbound", dial, hostIPs, farPort, "egress"),
		expect("outbound to port 22", dial, hostIPs, ignoredSSH, direct),
		expect("outbound to an ignored port", dial, hostIPs, ignoredPort, direct),
		expect("outbound to an ignored address", dial, ignoredIPs, farPort, direct),
		expect("outbound by Envoy's user", dialAsEnvoy, hostIPs, farPort, direct),
		expect("the pod to itself", dial, podIPs, appPort, direct),
		expect("loopback", dial, []string{"127.0.0.1", "::1"}, appPort, direct),
		expect("inbound", host.dial, podIPs, appPort, "ingress"),
		expect("inbound to a port that is not captured", host.dial, podIPs, uncaptured, direct),
	)
}

// A dialer connects over TCP, and gives the connection its deadline.
type dialer func(address string) (net.Conn, error)

func dial(address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(context.Background(), "tcp", address)
	if err == nil {
		err = conn.SetDeadline(clock.Real{}.Now().Add(dialTimeout))
	}
	return conn, err
}

// expect dials the port at each address, and fails unless the one who answers is who is wanted, and saw where the connection was meant for.
func expect(what string, dial dialer, ips []string, port int, who string) error {
	var faults []error
	for _, ip := range ips {
		address := net.JoinHostPort(ip, fmt.Sprint(port))
		got, err := ask(dial, address)
		want := who
		if who != direct {
			want += " " + address
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %s: %w", what, address, err))
		} else if got != want {
			faults = append(faults, fmt.Errorf("%s: %s answers %q, want %q", what, address, got, want))
		}
	}
	return errors.Join(faults...)
}

func ask(dial dialer, address string) (string, error) {
	conn, err := dial(address)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "hello"); err != nil {
		return "", err
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return strings.TrimSuffix(string(answer), " hello"), err
}

// dialAsEnvoy dials on a thread that is Envoy's user. The thread ends with its goroutine.
func dialAsEnvoy(address string) (net.Conn, error) {
	return onThread(func() (net.Conn, error) {
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, envoyUserID, envoyUserID, envoyUserID); errno != 0 {
			return nil, errno
		}
		return dial(address)
	})
}

// onThread runs a function on a thread of its own, which is thrown away.
func onThread[T any](f func() (T, error)) (T, error) {
	var result T
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked, so the thread ends
		result, err = f()
	}()
	<-done
	return result, err
}

// otherHost is a network namespace that the pod is joined to.
type otherHost struct {
	do chan func()
}

// dial dials from the other host.
func (h *otherHost) dial(address string) (conn net.Conn, err error) {
	h.run(func() { conn, err = dial(address) })
	return conn, err
}

func (h *otherHost) run(f func()) {
	done := make(chan struct{})
	h.do <- func() {
		defer close(done)
		f()
	}
	<-done
}

// joinHost makes the other host and the link to it.
func joinHost() (*otherHost, error) {
	h := &otherHost{do: make(chan func())}
	started := make(chan error)
	var tid int
	go func() {
		runtime.LockOSThread()
		tid = unix.Gettid()
		started <- unix.Unshare(unix.CLONE_NEWNET)
		for f := range h.do {
			f()
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	if err := netlink.LinkAdd(&netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: "pod"}, PeerName: "host", PeerNamespace: netlink.NsPid(tid),
	}); err != nil {
		return nil, fmt.Errorf("link: %w", err)
	}
	err := errors.Join(up("lo"), up("pod", podIPs...))
	h.run(func() { err = errors.Join(err, up("lo"), up("host", append(hostIPs, ignoredIPs...)...)) })
	return h, err
}

func up(name string, ips ...string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("link %s: %w", name, err)
	}
	for _, ip := range ips {
		address, err := netlink.ParseAddr(ip + prefixLength)
		if strings.Contains(ip, ":") {
			address, err = netlink.ParseAddr(ip + "/64")
		}
		if err != nil {
			return err
		}
		address.Flags = unix.IFA_F_NODAD
		if err := netlink.AddrAdd(link, address); err != nil {
			return fmt.Errorf("address %s: %w", ip, err)
		}
	}
	return netlink.LinkSetUp(link)
}

// listenEverywhere opens Envoy's two ports, the application's, and those of the other host.
func listenEverywhere(host *otherHost) error {
	var faults []error
	for _, network := range []string{"tcp4", "tcp6"} {
		faults = append(faults,
			answer(network, 15000, "ingress"), answer(network, 15001, "egress"),
			answer(network, appPort, direct), answer(network, uncaptured, direct))
		host.run(func() {
			faults = append(faults, answer(network, farPort, direct), answer(network, ignoredPort, direct), answer(network, ignoredSSH, direct))
		})
	}
	return errors.Join(faults...)
}

// answer says to each who connects which port answers, and what destination it had if it was captured, and echoes.
func answer(network string, port int, who string) error {
	listener, err := new(net.ListenConfig).Listen(context.Background(), network, fmt.Sprint(":", port))
	if err != nil {
		return err
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			words := who
			if who != direct {
				words += " " + originalDestination(conn.(*net.TCPConn), network == "tcp6")
			}
			go func() {
				_, _ = io.WriteString(conn, words+" ")
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}()
		}
	}()
	return nil
}

// originalDestination asks the kernel where a redirected connection was meant for.
func originalDestination(conn *net.TCPConn, v6 bool) string {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err.Error()
	}
	var address unix.RawSockaddrInet6
	size, level := uint32(unsafe.Sizeof(address)), uintptr(unix.SOL_IP)
	if v6 {
		level = unix.SOL_IPV6
	}
	var errno syscall.Errno
	const originalDst = 80
	if err := raw.Control(func(fd uintptr) {
		_, _, errno = syscall.Syscall6(syscall.SYS_GETSOCKOPT, fd, level, originalDst, uintptr(unsafe.Pointer(&address)), uintptr(unsafe.Pointer(&size)), 0)
	}); err != nil || errno != 0 {
		return fmt.Sprint(err, errno)
	}
	port := address.Port>>8 | address.Port<<8
	if v6 {
		return netip.AddrPortFrom(netip.AddrFrom16(address.Addr), port).String()
	}
	v4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(&address))
	return netip.AddrPortFrom(netip.AddrFrom4(v4.Addr), port).String()
}

// rules returns the nat rules of both families, without comments and counters.
func rules() (string, error) {
	var kept strings.Builder
	for _, name := range []string{"iptables-save", "ip6tables-save"} {
		out, err := exec.CommandContext(context.Background(), name, "-t", "nat").CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("%s: %w: %s", name, err, out)
		}
		for line := range strings.Lines(string(out)) {
			if !strings.HasPrefix(line, "#") {
				line, _, _ = strings.Cut(line, " [")
				kept.WriteString(strings.TrimSuffix(line, "\n") + "\n")
			}
		}
	}
	return kept.String(), nil
}
