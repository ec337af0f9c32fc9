// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy_test

import (
	"testing"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/file/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/tulle-mesh/tulle/internal/envoy"
)

// formats are log formats, and whether Envoy takes them.
func formats() map[string]bool {
	return map[string]bool{
		"":                                        true,
		"plain text, 100%%\n":                     true,
		"%REQ(:METHOD)% %REQ(x-a?:PATH):20%":      true,
		"%START_TIME(%Y-%m-%dT%H:%M:%S%z)%":       true,
		"%COMMON_DURATION(DS_RX_BEG:US_TX_BEG)%":  true,
		"%UPSTREAM_HOST()%":                       true,
		"%PATH(NQ):9%%GRPC_STATUS(SNAKE_STRING)%": true,
		"100%":                   false,
		"%duration%":             false,
		"% DURATION%":            false,
		"%DURATION":              false,
		"%DURATION:5%":           false,
		"%DURATION(a)%":          false,
		"%NO_SUCH_THING%":        false,
		"%REQ_WITHOUT_QUERY(a)%": false,
		"%REQ%":                  false,
		"%REQ()%":                false,
		"%REQ(a b)%":             false,
		"%REQ(a?b?c)%":           false,
		"%REQ(a):x%":             false,
		"%REQ(a\nb)%":            false,
		"%PROTOCOL%%":            false,
	}
}

func TestLogFormatsAreCheckedAsEnvoyDoes(t *testing.T) {
	t.Parallel()
	for text, want := range formats() {
		if err := envoy.CheckFormat(text); (err == nil) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestEnvoyAgreesOnLogFormats(t *testing.T) {
	t.Parallel()
	binary := envoyBinary(t)
	good := envoy.EveryOperator()
	for text, want := range formats() {
		if want {
			good += text + "\n"
			continue
		}
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			if validate(t, binary, logging(t, text)) == nil {
				t.Errorf("Envoy takes %q", text)
			}
		})
	}
	if err := envoy.CheckFormat(good); err != nil {
		t.Error(err)
	}
	if err := validate(t, binary, logging(t, good)); err != nil {
		t.Error(err)
	}
}

// logging is a bootstrap that logs in a format.
func logging(t *testing.T, text string) *bootstrapv3.Bootstrap {
	t.Helper()
	format := &corev3.SubstitutionFormatString{Format: &corev3.SubstitutionFormatString_TextFormatSource{
		TextFormatSource: &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: text}},
	}}
	log := wrap(t, &filev3.FileAccessLog{Path: "/dev/null", AccessLogFormat: &filev3.FileAccessLog_LogFormat{LogFormat: format}})
	address := &corev3.SocketAddress{Address: "127.0.0.1", PortSpecifier: &corev3.SocketAddress_PortValue{}}
	return &bootstrapv3.Bootstrap{Admin: &bootstrapv3.Admin{
		Address:   &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: address}},
		AccessLog: []*accesslogv3.AccessLog{{Name: "file", ConfigType: &accesslogv3.AccessLog_TypedConfig{TypedConfig: log}}},
	}}
}

func wrap(t *testing.T, m proto.Message) *anypb.Any {
	t.Helper()
	packed, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return packed
}
