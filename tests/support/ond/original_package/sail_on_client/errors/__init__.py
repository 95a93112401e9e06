from sail_on_client.errors.errors import ApiError, RoundError, ServerError

__all__ = ["ApiError", "RoundError", "ServerError"]
