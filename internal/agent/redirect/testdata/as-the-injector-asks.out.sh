# IPv6
ip6tables-restore --wait --noflush <<'EOF'
*nat
-N APPMESH_EGRESS
-A APPMESH_EGRESS -d ::1/128 -j RETURN
-A APPMESH_EGRESS -m owner --uid-owner 1337 -j RETURN
-A APPMESH_EGRESS -p tcp -m multiport --dports 22 -j RETURN
-A APPMESH_EGRESS -p tcp -j REDIRECT --to-ports 15001
-A OUTPUT -p tcp -m addrtype ! --dst-type LOCAL -j APPMESH_EGRESS
-N APPMESH_INGRESS
-A APPMESH_INGRESS -p tcp -m multiport --dports 8080 -j REDIRECT --to-ports 15000
-A PREROUTING -p tcp -m addrtype ! --src-type LOCAL -j APPMESH_INGRESS
COMMIT
EOF
# IPv4
iptables-restore --wait --noflush <<'EOF'
*nat
-N APPMESH_EGRESS
-A APPMESH_EGRESS -d 127.0.0.0/8 -j RETURN
-A APPMESH_EGRESS -m owner --uid-owner 1337 -j RETURN
-A APPMESH_EGRESS -p tcp -m multiport --dports 22 -j RETURN
-A APPMESH_EGRESS -d 169.254.169.254/32 -p tcp -j RETURN
-A APPMESH_EGRESS -p tcp -j REDIRECT --to-ports 15001
-A OUTPUT -p tcp -m addrtype ! --dst-type LOCAL -j APPMESH_EGRESS
-N APPMESH_INGRESS
-A APPMESH_INGRESS -p tcp -m multiport --dports 8080 -j REDIRECT --to-ports 15000
-A PREROUTING -p tcp -m addrtype ! --src-type LOCAL -j APPMESH_INGRESS
COMMIT
EOF
