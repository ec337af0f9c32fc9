// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

//go:build ignore

// Command coredns is CoreDNS with the few plugins that a cluster needs; its own main would bring in every cloud's SDK.
// The lab builds it in a module of its own.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/hosts"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"
	_ "github.com/coredns/coredns/plugin/template"
)

func main() {
	dnsserver.Directives = []string{"reload", "health", "ready", "errors", "log", "cache", "hosts", "kubernetes", "template"}
	coremain.Run()
}
