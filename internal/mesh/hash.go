// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

import (
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
)

// Hash is a digest of all that the View holds: Views with one hash translate to the same configuration. It is the same in every process of one version of the program.
func (v *View) Hash() [sha256.Size]byte {
	return sha256.Sum256(v.append(make([]byte, 0, 4096)))
}

// encoding is an unambiguous form of values: strings and lists carry their length, pointers whether they are set.
type encoding []byte

func (e encoding) text(s string) encoding {
	return append(binary.AppendUvarint(e, uint64(len(s))), s...)
}

func (e encoding) number(n int64) encoding { return binary.AppendVarint(e, n) }

func (e encoding) flag(b bool) encoding {
	if b {
		return append(e, 1)
	}
	return append(e, 0)
}

func (e encoding) optional(s *string) encoding {
	if s == nil {
		return append(e, 0)
	}
	return append(e, 1).text(*s)
}

func (e encoding) optionalNumber(n *int32) encoding {
	if n == nil {
		return append(e, 0)
	}
	return append(e, 1).number(int64(*n))
}

func (e encoding) texts(list []string) encoding { return appendList(e, list, encoding.textOf) }

func (e encoding) textOf(s *string) encoding { return e.text(*s) }

func (e encoding) key(k *Key) encoding {
	return e.text(string(k.Kind)).text(k.Mesh).text(k.Parent).text(k.Name)
}

func (e encoding) address(a *netip.Addr) encoding {
	b := a.As16()
	return append(e.number(int64(a.BitLen())), b[:]...).text(a.Zone())
}

// appendList writes a list's length and members.
func appendList[T any](e encoding, list []T, one func(encoding, *T) encoding) encoding {
	e = binary.AppendUvarint(e, uint64(len(list)))
	for i := range list {
		e = one(e, &list[i])
	}
	return e
}

// appendPointer writes whether p is set, and what it points to.
func appendPointer[T any](e encoding, p *T, one func(encoding, *T) encoding) encoding {
	if p == nil {
		return append(e, 0)
	}
	return one(append(e, 1), p)
}

func (v *View) append(e encoding) encoding {
	e = e.key(&v.Proxy).flag(v.Profile.IPv6).flag(v.Profile.MetricsExtension).flag(v.Profile.StockImage)
	e = e.text(string(v.Egress)).text(string(v.IPPreference))
	e = appendList(e, v.Listeners, appendListener)
	e = appendPointer(e, v.Logging, appendLogging)
	e = appendList(e, v.Services, appendService)
	return appendList(e, v.Nodes, appendNode)
}

func appendService(e encoding, s *ServiceView) encoding {
	e = appendList(e.text(s.Name), s.Addresses, encoding.address)
	e = appendPointer(e.flag(s.OwnPolicy), s.ClientPolicy, appendClientPolicy)
	return appendList(e, s.Ports, func(e encoding, p *ServicePortView) encoding {
		return appendList(e.number(int64(p.Port)).text(string(p.Protocol)), p.Routes, appendRoute)
	})
}

func appendRoute(e encoding, r *RouteView) encoding {
	e = e.key(&r.Route).flag(r.TCP).flag(r.Refused)
	e = appendPointer(e, r.HTTP, appendHTTPMatch)
	e = appendPointer(e, r.GRPC, appendGRPCMatch)
	e = appendPointer(e, r.Timeout, appendHTTPTimeout)
	e = appendPointer(e, r.TCPIdle, appendDuration)
	e = appendPointer(e, r.DefaultTimeout, appendDuration)
	e = appendPointer(e, r.Retry, appendRetry)
	return appendList(e, r.Targets, func(e encoding, t *TargetView) encoding {
		return e.text(t.Node).number(int64(t.Port)).number(int64(t.Weight))
	})
}

func appendHTTPMatch(e encoding, m *HTTPRouteMatch) encoding {
	e = e.optional(m.Prefix).text(m.Method).text(m.Scheme).optionalNumber(m.Port)
	e = appendPointer(e, m.Path, func(e encoding, p *HTTPPathMatch) encoding { return e.optional(p.Exact).optional(p.Regex) })
	e = appendList(e, m.QueryParameters, func(e encoding, q *QueryParameter) encoding {
		return appendPointer(e.text(q.Name), q.Match, func(e encoding, m *QueryParameterMatch) encoding { return e.optional(m.Exact) })
	})
	return appendList(e, m.Headers, appendHeader)
}

func appendGRPCMatch(e encoding, m *GRPCRouteMatch) encoding {
	return appendList(e.text(m.ServiceName).text(m.MethodName).optionalNumber(m.Port), m.Metadata, appendHeader)
}

func appendHeader(e encoding, h *HeaderMatch) encoding {
	return appendPointer(e.text(h.Name).flag(h.Invert), h.Match, func(e encoding, m *ValueMatch) encoding {
		e = e.optional(m.Exact).optional(m.Prefix).optional(m.Suffix).optional(m.Regex)
		return appendPointer(e, m.Range, func(e encoding, r *MatchRange) encoding { return e.number(r.Start).number(r.End) })
	})
}

func appendRetry(e encoding, r *RetryPolicy) encoding {
	e = appendPointer(e.number(r.MaxRetries), r.PerRetryTimeout, appendDuration)
	return e.texts(r.HTTPRetryEvents).texts(r.TCPRetryEvents).texts(r.GRPCRetryEvents)
}

func appendDuration(e encoding, d *Duration) encoding { return e.number(d.Value).text(string(d.Unit)) }

func appendHTTPTimeout(e encoding, t *HTTPTimeout) encoding {
	return appendPointer(appendPointer(e, t.PerRequest, appendDuration), t.Idle, appendDuration)
}

func appendTCPTimeout(e encoding, t *TCPTimeout) encoding {
	return appendPointer(e, t.Idle, appendDuration)
}

func appendNode(e encoding, n *NodeView) encoding {
	e = e.text(n.Name).text(string(n.Discovery.Type)).text(n.Discovery.Hostname).text(string(n.Discovery.IPPreference))
	return appendList(e, n.Listeners, func(e encoding, l *NodeListenerView) encoding {
		e = e.number(int64(l.Port)).text(string(l.Protocol)).text(string(l.TLS))
		e = appendPointer(e, l.HealthCheck, appendHealthCheck)
		return appendPointer(e, l.OutlierDetection, appendOutlierDetection)
	})
}

func appendHealthCheck(e encoding, h *HealthCheckPolicy) encoding {
	e = e.number(int64(h.HealthyThreshold)).number(int64(h.UnhealthyThreshold)).number(h.IntervalMillis).number(h.TimeoutMillis)
	return e.text(h.Path).number(int64(h.Port)).text(string(h.Protocol))
}

func appendOutlierDetection(e encoding, o *OutlierDetection) encoding {
	e = appendPointer(e.number(o.MaxServerErrors), o.Interval, appendDuration)
	return appendPointer(e, o.BaseEjectionDuration, appendDuration).number(int64(o.MaxEjectionPercent))
}
