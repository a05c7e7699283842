/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/tls/tls-private.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <stdio.h>

/* clang-format off */
static const struct {
    const char *name;
    const char *text;
} faults[] = {
    [TLS_NO_FAULT] = {"", ""},
#define X(id, name, text) [TLS_FAULT_##id] = {name, text},
    TLS_FAULTS(X)
#undef X
};
/* clang-format on */

const char *tls_fault_name(enum tls_fault fault)
{
    return faults[fault].name;
}

const char *tls_fault_text(enum tls_fault fault)
{
    return faults[fault].text;
}

bool tls_fault_is_certificate(enum tls_fault fault)
{
    return fault >= TLS_FAULT_CERT_EXPIRED && fault <= TLS_FAULT_CERT_INVALID;
}

void tls_ready(void)
{
    (void)OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL); /* fails without memory only */
}

int tls_err(struct err *err, enum err_code code, const char *what)
{
    const char *why = ERR_reason_error_string(ERR_peek_last_error());

    ERR_clear_error();
    return err_set(err, code, "%s: %s", what, why ? why : "OpenSSL does not say why");
}

bool tls_is_address(const char *host)
{
    unsigned char bytes[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

/* clang-format off */
static const struct {
    int reason; /* X509_V_ERR_ */
    enum tls_fault fault;
} certificate_faults[] = {
    {X509_V_ERR_CERT_HAS_EXPIRED, TLS_FAULT_CERT_EXPIRED},
    {X509_V_ERR_CERT_NOT_YET_VALID, TLS_FAULT_CERT_NOT_YET},
    {X509_V_ERR_HOSTNAME_MISMATCH, TLS_FAULT_CERT_NAME},
    {X509_V_ERR_IP_ADDRESS_MISMATCH, TLS_FAULT_CERT_NAME},
    {X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, TLS_FAULT_CERT_SELF_SIGNED},
    {X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, TLS_FAULT_CERT_ROOT},
    {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, TLS_FAULT_CERT_ROOT},
    {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, TLS_FAULT_CERT_ROOT},
    {X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, TLS_FAULT_CERT_ROOT},
    {X509_V_ERR_CERT_UNTRUSTED, TLS_FAULT_CERT_ROOT},
    {X509_V_ERR_CERT_REVOKED, TLS_FAULT_CERT_REVOKED},
    {X509_V_ERR_EE_KEY_TOO_SMALL, TLS_FAULT_CERT_WEAK},
    {X509_V_ERR_CA_KEY_TOO_SMALL, TLS_FAULT_CERT_WEAK},
    {X509_V_ERR_CA_MD_TOO_WEAK, TLS_FAULT_CERT_WEAK},
    {X509_V_ERR_INVALID_PURPOSE, TLS_FAULT_CERT_PURPOSE},
    {X509_V_ERR_INVALID_CA, TLS_FAULT_CERT_PURPOSE},
    {X509_V_ERR_PATH_LENGTH_EXCEEDED, TLS_FAULT_CERT_PURPOSE},
};

/* Reasons of the TLS library; alerts of the other side that are not here are TLS_FAULT_ALERT. */
static const struct {
    int reason; /* SSL_R_ */
    enum tls_fault fault;
} reasons[] = {
    {SSL_R_UNSUPPORTED_PROTOCOL, TLS_FAULT_VERSION},
    {SSL_R_VERSION_TOO_LOW, TLS_FAULT_VERSION},
    {SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, TLS_FAULT_VERSION},
    {SSL_R_NO_SHARED_CIPHER, TLS_FAULT_NO_CIPHER},
    {SSL_R_NO_SHARED_GROUPS, TLS_FAULT_NO_CIPHER},
    {SSL_R_NO_SUITABLE_KEY_SHARE, TLS_FAULT_NO_CIPHER},
    {SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM, TLS_FAULT_NO_CIPHER},
    {SSL_R_NO_APPLICATION_PROTOCOL, TLS_FAULT_ALPN},
    {SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL, TLS_FAULT_ALPN},
    {SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED, TLS_FAULT_CLIENT_CERT},
    {SSL_R_UNEXPECTED_EOF_WHILE_READING, TLS_FAULT_TRUNCATED},
};

/* Alerts by which a client says that it does not believe our certificate. */
static const int distrust[] = {
    SSL_R_TLSV1_ALERT_UNKNOWN_CA,
    SSL_R_SSLV3_ALERT_BAD_CERTIFICATE,
    SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN,
    SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED,
    SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE,
};
/* clang-format on */

static enum tls_fault certificate_fault(long reason)
{
    for (size_t i = 0; i < COUNT(certificate_faults); i++) {
        if (certificate_faults[i].reason == reason)
            return certificate_faults[i].fault;
    }
    return TLS_FAULT_CERT_INVALID;
}

static bool is_distrust(int reason)
{
    for (size_t i = 0; i < COUNT(distrust); i++) {
        if (distrust[i] == reason)
            return true;
    }
    return false;
}

static enum tls_fault reason_fault(const struct tls_side *side, int reason)
{
    for (size_t i = 0; i < COUNT(reasons); i++) {
        if (reasons[i].reason == reason)
            return reasons[i].fault;
    }
    if (reason < SSL_AD_REASON_OFFSET)
        return TLS_FAULT_PROTOCOL;
    if (side->is_server && is_distrust(reason))
        return TLS_FAULT_CLIENT_DISTRUST;
    return side->asked_for_certificate ? TLS_FAULT_CLIENT_CERT : TLS_FAULT_ALERT;
}

enum tls_fault tls_verdict(const struct tls_side *side, char *detail, size_t detail_size)
{
    unsigned long code = ERR_peek_error();
    const char *why = ERR_reason_error_string(code);
    int reason = ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) : 0;
    long verified = SSL_get_verify_result(side->ssl);

    ERR_clear_error();
    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED && !side->is_server) {
        (void)snprintf(detail, detail_size, "%s", X509_verify_cert_error_string(verified));
        return certificate_fault(verified);
    }
    (void)snprintf(detail, detail_size, "%s", why ? why : "no more is known");
    return reason_fault(side, reason);
}
