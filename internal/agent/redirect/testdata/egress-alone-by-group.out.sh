# IPv6
ip6tables-restore --wait --noflush <<'EOF'
*nat
-N APPMESH_EGRESS
-A APPMESH_EGRESS -d ::1/128 -j RETURN
-A APPMESH_EGRESS -m owner --gid-owner 2000 -j RETURN
-A APPMESH_EGRESS -p tcp -m multiport --dports 22 -j RETURN
-A APPMESH_EGRESS -d fd00:1::/32 -p tcp -j RETURN
-A APPMESH_EGRESS -p tcp -j REDIRECT --to-ports 16001
-A OUTPUT -p tcp -m addrtype ! --dst-type LOCAL -j APPMESH_EGRESS
COMMIT
EOF
# IPv4
iptables-restore --wait --noflush <<'EOF'
*nat
-N APPMESH_EGRESS
-A APPMESH_EGRESS -d 127.0.0.0/8 -j RETURN
-A APPMESH_EGRESS -m owner --gid-owner 2000 -j RETURN
-A APPMESH_EGRESS -p tcp -m multiport --dports 22 -j RETURN
-A APPMESH_EGRESS -d 10.0.0.0/8 -p tcp -j RETURN
-A APPMESH_EGRESS -d 192.0.2.7/32 -p tcp -j RETURN
-A APPMESH_EGRESS -p tcp -j REDIRECT --to-ports 16001
-A OUTPUT -p tcp -m addrtype ! --dst-type LOCAL -j APPMESH_EGRESS
COMMIT
EOF
