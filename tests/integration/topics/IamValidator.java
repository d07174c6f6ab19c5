import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.Map;
import java.util.Set;
import javax.security.auth.callback.Callback;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallback;

/** Has a broker take those tokens whose signer a service names; the property `iam.url` is its address. */
public class IamValidator implements AuthenticateCallbackHandler {
    private static final long LIFE = 900_000;
    private final HttpClient client = HttpClient.newHttpClient();
    private final String url = System.getProperty("iam.url");

    @Override
    public void configure(Map<String, ?> settings, String mechanism, List<AppConfigurationEntry> entries) {}

    @Override
    public void handle(Callback[] callbacks) throws IOException {
        for (Callback callback : callbacks) {
            if (callback instanceof OAuthBearerValidatorCallback asked) {
                var request = HttpRequest.newBuilder(URI.create(url + asked.tokenValue())).build();
                try {
                    var answer = client.send(request, HttpResponse.BodyHandlers.ofString());
                    if (answer.statusCode() == 200) {
                        asked.token(new Token(asked.tokenValue(), answer.body(), System.currentTimeMillis()));
                    } else {
                        asked.error("invalid_token", null, null);
                    }
                } catch (InterruptedException error) {
                    throw new IOException(error);
                }
            }
        }
    }

    @Override
    public void close() {}

    private record Token(String value, String principalName, Long startTimeMs) implements OAuthBearerToken {
        @Override
        public Set<String> scope() {
            return Set.of();
        }

        @Override
        public long lifetimeMs() {
            return startTimeMs + LIFE;
        }
    }
}
