// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	"fmt"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/file/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// accessLog makes the access log that all filters of the proxy share; none where the node asks for none.
func (b *builder) accessLog() {
	if b.view.Logging == nil || b.view.Logging.AccessLog == nil || b.view.Logging.AccessLog.File == nil {
		return
	}
	file := b.view.Logging.AccessLog.File
	log := &filev3.FileAccessLog{Path: file.Path}
	if format := b.logFormat(file.Format); format != nil {
		log.AccessLogFormat = &filev3.FileAccessLog_LogFormat{LogFormat: format}
	}
	packed, err := pack(log)
	if err != nil {
		b.reject(b.view.Proxy, "the access log", err)
		return
	}
	b.log = []*accesslogv3.AccessLog{{Name: "envoy.access_loggers.file", ConfigType: &accesslogv3.AccessLog_TypedConfig{TypedConfig: packed}}}
}

// logFormat is the user's format of a line; nil is Envoy's own, which also stands in for one that Envoy would refuse.
func (b *builder) logFormat(f *mesh.LoggingFormat) *corev3.SubstitutionFormatString {
	switch {
	case f == nil:
		return nil
	case len(f.JSON) > 0:
		return b.jsonFormat(f.JSON)
	case f.Text == "" || !b.acceptFormat("text", f.Text):
		return nil
	default:
		text := &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: f.Text}}
		return &corev3.SubstitutionFormatString{Format: &corev3.SubstitutionFormatString_TextFormatSource{TextFormatSource: text}}
	}
}

// jsonFormat makes one object a line. Envoy writes its members in the order of their keys, whatever the user's is.
func (b *builder) jsonFormat(members []mesh.JSONFormatRef) *corev3.SubstitutionFormatString {
	line := &structpb.Struct{Fields: make(map[string]*structpb.Value, len(members))}
	for i, member := range members {
		if !b.acceptFormat(fmt.Sprintf("json[%d].value", i), member.Value) {
			return nil
		}
		line.Fields[member.Key] = structpb.NewStringValue(member.Value)
	}
	return &corev3.SubstitutionFormatString{Format: &corev3.SubstitutionFormatString_JsonFormat{JsonFormat: line}}
}

// acceptFormat says whether Envoy takes a format, and reports one that it does not.
func (b *builder) acceptFormat(field, text string) bool {
	err := checkFormat(text)
	if err != nil {
		b.report(mesh.ReasonRejected, b.view.Proxy, mesh.Finding{
			Field: "spec.logging.accessLog.file.format." + field, Value: text,
			Message: "the access log has Envoy's own format, for Envoy would refuse the one asked for: " + err.Error(), Mend: "correct the operator",
		})
	}
	return err == nil
}
