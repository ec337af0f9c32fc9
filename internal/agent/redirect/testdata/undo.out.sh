# IPv6
ip6tables-restore --wait --noflush <<'EOF'
*nat
-D OUTPUT -p tcp -m addrtype ! --dst-type LOCAL -j APPMESH_EGRESS
-D PREROUTING -p tcp -m addrtype ! --src-type LOCAL -j APPMESH_INGRESS
-F APPMESH_EGRESS
-F APPMESH_INGRESS
-X APPMESH_EGRESS
-X APPMESH_INGRESS
COMMIT
EOF
# IPv4
iptables-restore --wait --noflush <<'EOF'
*nat
-D OUTPUT -p tcp -m addrtype ! --dst-type LOCAL -j APPMESH_EGRESS
-D PREROUTING -p tcp -m addrtype ! --src-type LOCAL -j APPMESH_INGRESS
-F APPMESH_EGRESS
-F APPMESH_INGRESS
-X APPMESH_EGRESS
-X APPMESH_INGRESS
COMMIT
EOF
