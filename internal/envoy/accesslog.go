// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
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
	if format := logFormat(file.Format); format != nil {
		log.AccessLogFormat = &filev3.FileAccessLog_LogFormat{LogFormat: format}
	}
	packed, err := pack(log)
	if err != nil {
		b.reject(b.view.Proxy, "the access log", err)
		return
	}
	b.log = []*accesslogv3.AccessLog{{Name: "envoy.access_loggers.file", ConfigType: &accesslogv3.AccessLog_TypedConfig{TypedConfig: packed}}}
}

// logFormat is the user's format of a line; nil is Envoy's own. Envoy writes the members of a JSON line in the order of their keys.
func logFormat(f *mesh.LoggingFormat) *corev3.SubstitutionFormatString {
	switch {
	case f == nil:
		return nil
	case len(f.JSON) > 0:
		line := &structpb.Struct{Fields: make(map[string]*structpb.Value, len(f.JSON))}
		for _, member := range f.JSON {
			line.Fields[member.Key] = structpb.NewStringValue(member.Value)
		}
		return &corev3.SubstitutionFormatString{Format: &corev3.SubstitutionFormatString_JsonFormat{JsonFormat: line}}
	case f.Text != "":
		text := &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: f.Text}}
		return &corev3.SubstitutionFormatString{Format: &corev3.SubstitutionFormatString_TextFormatSource{TextFormatSource: text}}
	default:
		return nil
	}
}
