// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cli

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tulle-mesh/tulle/internal/xds"
)

func TestAReplicasPageIsReadAsItIsWritten(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	page, err := json.Marshal([]xds.ProxyStatus{{
		Proxy: xds.Proxy{NodeID: "mesh/m/virtualNode/web", Address: "10.0.0.1:4000"}, Since: begin,
		Types: []xds.TypeStatus{
			{Pending: 2, Resources: []xds.ResourceStatus{{Name: "a", Acked: true}, {Name: "b"}}},
			{LastNack: "no", NackedAt: begin.Add(time.Second)},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := readProxies("one", page)
	want := []proxyRow{{
		Node: "mesh/m/virtualNode/web", Address: "10.0.0.1:4000", Replica: "one", Since: begin,
		Resources: 2, Acked: 1, Pending: 2, LastNack: "no", NackedAt: begin.Add(time.Second),
	}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v; proxies (-want +got):\n%s", err, diff)
	}
	if _, err := readProxies("one", []byte("<html>")); err == nil {
		t.Error("a page that is no JSON is no error")
	}
}
