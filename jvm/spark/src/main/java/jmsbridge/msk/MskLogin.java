package jmsbridge.msk;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.UnsupportedCallbackException;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.auth.SaslExtensionsCallback;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerTokenCallback;

/**
 * Handler that gives Kafka's clients tokens for the login by IAM at Amazon MSK. They ask for a new one before the last
 * one ends. The option `region` of the login module is the region of the brokers.
 */
public final class MskLogin implements AuthenticateCallbackHandler {
  private String region;

  @Override
  public void configure(Map<String, ?> settings, String mechanism, List<AppConfigurationEntry> entries) {
    region = (String) entries.get(0).getOptions().get("region");
  }

  @Override
  public void handle(Callback[] callbacks) throws UnsupportedCallbackException {
    for (Callback callback : callbacks) {
      if (callback instanceof OAuthBearerTokenCallback wanted) {
        give(wanted);
      } else if (!(callback instanceof SaslExtensionsCallback)) {
        throw new UnsupportedCallbackException(callback);
      }
    }
  }

  @Override
  public void close() {
    // It holds nothing.
  }

  private void give(OAuthBearerTokenCallback wanted) {
    try {
      wanted.token(MskToken.signed(region, AwsCredentials.find(System.getenv()), System.currentTimeMillis()));
    } catch (IOException | IllegalArgumentException error) {
      // The login module passes on this text, but not that of an exception.
      wanted.error("credentials", error.getMessage(), null);
    }
  }
}
