// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cli

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tulle-mesh/tulle/internal/mesh"
	"github.com/tulle-mesh/tulle/internal/plane"
	"github.com/tulle-mesh/tulle/internal/xds"
)

func TestAReplicasPageIsReadAsItIsWritten(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	page, err := json.Marshal([]xds.ProxyStatus{{
		Proxy: xds.Proxy{NodeID: "mesh/m/virtualNode/web", Address: "10.0.0.1:4000", Identity: "pod shop/web-1"}, Since: begin,
		Types: []xds.TypeStatus{
			{Pending: 2, AckedAt: begin.Add(time.Minute), Resources: []xds.ResourceStatus{{Name: "a", Version: "1", Acked: true}, {Name: "b"}}},
			{
				LastNack: "no", NackedAt: begin.Add(time.Second),
				Resources: []xds.ResourceStatus{{Name: "c", Refused: "no", Origin: plane.Origin{mesh.NodeKey("m", "web"), mesh.NodeKey("m", "web")}}},
			},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := readProxies("one", page)
	want := []proxyRow{{
		Node: "mesh/m/virtualNode/web", Pod: "shop/web-1", Address: "10.0.0.1:4000", Replica: "one", Since: begin,
		Resources: 3, Acked: 1, Pending: 2, Version: "79d5d24a", VersionSince: begin.Add(time.Minute),
		LastNack: "no", NackedAt: begin.Add(time.Second), Refused: []string{"VirtualNode m/web"},
	}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v; proxies (-want +got):\n%s", err, diff)
	}
	if _, err := readProxies("one", []byte("<html>")); err == nil {
		t.Error("a page that is no JSON is no error")
	}
}
