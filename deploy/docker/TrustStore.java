import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;

/** Writes the certificates of a PEM file to a trust store that Java reads: {@code TrustStore PEM-FILE STORE}. */
class TrustStore {
    public static void main(String[] files) throws Exception {
        KeyStore store = KeyStore.getInstance("JKS");
        store.load(null, null);
        try (var pem = Files.newInputStream(Path.of(files[0]))) {
            for (var certificate : CertificateFactory.getInstance("X.509").generateCertificates(pem)) {
                store.setCertificateEntry("authority-" + store.size(), certificate);
            }
        }
        // Certificates are public; the password is the one that Java's own store has.
        try (var out = Files.newOutputStream(Path.of(files[1]))) {
            store.store(out, "changeit".toCharArray());
        }
    }
}
