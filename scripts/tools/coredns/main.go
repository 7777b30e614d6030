// Command coredns is CoreDNS with the plug-ins that a cluster's DNS needs and no other, so that it builds in a minute.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/loop"
	_ "github.com/coredns/coredns/plugin/ready"
)

func init() {
	// The order in which a request passes them, as in CoreDNS's own plugin.cfg.
	dnsserver.Directives = []string{"health", "ready", "errors", "log", "cache", "loop", "kubernetes", "forward"}
}

func main() {
	coremain.Run()
}
