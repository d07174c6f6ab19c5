# root.sh PACKAGES FOLDER: unpacks packages of Debian into FOLDER, without their scripts, and makes the bridge's user.
set -eu
packages=$1 image=$2
notes=$image/var/lib/dpkg/status.d
mkdir -p "$notes" "$image/usr/bin" "$image/usr/sbin" "$image/usr/lib" "$image/usr/lib64" "$image/tmp"
for folder in bin sbin lib lib64; do ln -s "usr/$folder" "$image/$folder"; done

files=$(mktemp -d)
(cd "$files" && xargs apt-get download) < "$packages"
for file in "$files"/*.deb; do
    dpkg-deb --fsys-tarfile "$file" | tar --extract --directory "$image" --keep-directory-symlink \
        --exclude='./usr/share/doc/*/[!c]*' --exclude='./usr/share/doc/*/changelog*' --exclude='./usr/share/man' \
        --exclude='./usr/share/lintian' --exclude='./usr/share/locale'
    dpkg-deb --field "$file" > "$notes/$(dpkg-deb --field "$file" Package)"
done
rm -r "$files"

# What scripts of the packages would have made.
cp --dereference /etc/ssl/certs/ca-certificates.crt "$image/etc/ssl/certs/"
python3 -m compileall -q -s "$image" "$image/usr/lib/python3.11"
ln -s python3.11 "$image/usr/bin/python3"
ln -sf dash "$image/usr/bin/sh"

echo 'root:x:0:0:root:/root:/usr/sbin/nologin' > "$image/etc/passwd"
echo 'jms-bridge:x:10001:10001:jms-bridge:/var/lib/jms-bridge:/usr/sbin/nologin' >> "$image/etc/passwd"
printf 'root:x:0:\njms-bridge:x:10001:\n' > "$image/etc/group"
chmod 1777 "$image/tmp"
install --directory --mode 700 --owner 10001 --group 10001 "$image/var/lib/jms-bridge"
