// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package relay

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
)

// Endpoint is one address of the control plane.
type Endpoint struct {
	// network is tcp or unix; address is what net.Dial takes with it.
	network, address string
	// remote says that what is sent there leaves the machine.
	remote bool
}

// String is the endpoint as ParseEndpoints reads it.
func (e Endpoint) String() string {
	if e.network == "unix" {
		return "unix://" + e.address
	}
	return e.address
}

// ParseEndpoints reads a list, separated by commas, of HOST:PORT and unix:///PATH. Which of them may be used is for Trust.Check to say.
func ParseEndpoints(list string) ([]Endpoint, error) {
	var endpoints []Endpoint
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		e, err := parseEndpoint(item)
		if err != nil {
			return nil, fmt.Errorf("endpoint %q: %w", item, err)
		}
		endpoints = append(endpoints, e)
	}
	if len(endpoints) == 0 {
		return nil, errors.New("no endpoint of the control plane: want HOST:PORT or unix:///PATH, several separated by commas")
	}
	return endpoints, nil
}

func parseEndpoint(item string) (Endpoint, error) {
	if path, ok := strings.CutPrefix(item, "unix:"); ok {
		path = strings.TrimPrefix(path, "//")
		if !filepath.IsAbs(path) {
			return Endpoint{}, errors.New("the path of a unix socket must be absolute: unix:///PATH")
		}
		return Endpoint{network: "unix", address: path}, nil
	}
	host, port, err := net.SplitHostPort(item)
	if err != nil {
		return Endpoint{}, errors.New("want HOST:PORT or unix:///PATH")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return Endpoint{}, fmt.Errorf("%q is not a port from 1 to 65535", port)
	}
	if host == "" {
		return Endpoint{}, errors.New("want HOST:PORT or unix:///PATH")
	}
	ip, err := netip.ParseAddr(host)
	return Endpoint{network: "tcp", address: item, remote: host != "localhost" && (err != nil || !ip.IsLoopback())}, nil
}
